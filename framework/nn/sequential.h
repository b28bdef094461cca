// Sequential: modules run one after the other.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// A chain of modules, each fed the output of the one before.
class Sequential final : public Module {
 public:
  /// Appends a layer made from its options: `model.add<Linear>("fc1", {.in_features = 784, …})`.
  /// *Errors:* those of the layer; StateError when the name is taken.
  template <class Layer>
  Layer& add(std::string name, typename Layer::Options options = {}) {
    return static_cast<Layer&>(add(std::move(name), std::make_unique<Layer>(options)));
  }
  Module& add(std::string name, std::unique_ptr<Module> child) {
    return register_module(std::move(name), std::move(child));
  }

  std::string_view type() const override { return "sequential"; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
