// The Residual layer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/nn/chain.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = layers(x) + shortcut(x); a shortcut without layers is the identity. It adds no level to
/// paths: a layer "fc1" of a residual in "block" is block.fc1. *Shapes:* any that both return.
///
///     auto& block = model.add<Residual>("block1");
///     block.add<Linear>("fc1", {.in_features = 64, .out_features = 32});
///     block.add_shortcut<Linear>("down", {.in_features = 64, .out_features = 32});
class Residual final : public Module {
 public:
  struct Options {};

  Residual() = default;
  explicit Residual(const Options&) {}

  /// Appends to the layers. *Errors:* as for Sequential; names are unique in the outer group.
  template <class Layer>
  Layer& add(std::string name, typename Layer::Options options = {}) {
    return static_cast<Layer&>(add(std::move(name), std::make_unique<Layer>(options)));
  }
  Module& add(std::string name, std::unique_ptr<Module> child) {
    return append(layers_, std::move(name), std::move(child));
  }
  /// Appends to the shortcut, which replaces the identity.
  template <class Layer>
  Layer& add_shortcut(std::string name, typename Layer::Options options = {}) {
    return static_cast<Layer&>(add_shortcut(std::move(name), std::make_unique<Layer>(options)));
  }
  Module& add_shortcut(std::string name, std::unique_ptr<Module> child) {
    return append(shortcut_, std::move(name), std::move(child));
  }

  const Chain& layers() const { return layers_; }
  const Chain& shortcut() const { return shortcut_; }

  std::string_view type() const override { return "residual"; }
  /// *Errors:* ShapeError with both shapes if layers and shortcut return different ones.
  Shape output_shape(const Shape& input) const override;
  std::optional<std::vector<Shape>> child_inputs(const Shape& input) const override;
  /// "shortcut: identity", "shortcut: linear downsample.0".
  std::string description() const override;
  bool joins_branches() const override { return true; }

 protected:
  Variable forward(const Variable& input) override;
  std::vector<Variable> forward_in_shards(std::span<const Variable> inputs) override;

 private:
  Module& append(Chain& chain, std::string name, std::unique_ptr<Module> child);
  Variable joined(const Variable& layers, const Variable& shortcut) const;
  void require_equal(const Shape& layers, const Shape& shortcut) const;

  Chain layers_, shortcut_;
};

}  // namespace lacuna
