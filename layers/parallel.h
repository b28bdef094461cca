// The Parallel layer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Branches with the same input, whose outputs are concatenated in the order in which the branches
/// were added. Like Residual, it adds no level to paths. *Shapes:* [..., a], [..., b] → [..., a +
/// b]; for images [batch, channels, height, width], channels are concatenated. All other dimensions
/// must be equal.
class Parallel final : public Module {
 public:
  struct Options {};

  Parallel() = default;
  explicit Parallel(const Options&) {}

  /// Appends a branch: a layer, or a Sequential. *Errors:* as for Sequential; names must be unique
  /// in the group that contains this module.
  template <class Layer>
  Layer& add(std::string name, typename Layer::Options options = {}) {
    return static_cast<Layer&>(add(std::move(name), std::make_unique<Layer>(options)));
  }
  Module& add(std::string name, std::unique_ptr<Module> child);

  /// The shape of two concatenated outputs of one example; empty if they do not fit.
  static std::optional<Shape> side_by_side(const Shape& a, const Shape& b);

  std::string_view type() const override { return "parallel"; }
  /// *Errors:* ShapeError with both shapes if two outputs do not fit, or if there is no branch.
  Shape output_shape(const Shape& input) const override;
  std::optional<std::vector<Shape>> child_inputs(const Shape& input) const override;
  bool joins_branches() const override { return true; }

 protected:
  Variable forward(const Variable& input) override;
  std::vector<Variable> forward_in_shards(std::span<const Variable> inputs) override;

 private:
  std::vector<Module*> branches_;
};

}  // namespace lacuna
