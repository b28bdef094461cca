// Sequential: modules run one after the other.
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

/// A chain of modules, each of which receives the output of the one before.
class Sequential final : public Module {
 public:
  struct Options {
    std::string description;  ///< for tables of the model, as in "template: block"
  };

  Sequential() = default;
  explicit Sequential(Options options) : options_(std::move(options)) {}

  /// Appends a layer made from its options: `model.add<Linear>("fc1", {.in_features = 784, …})`.
  /// *Errors:* those of the layer; StateError when the name is taken.
  template <class Layer>
  Layer& add(std::string name, typename Layer::Options options = {}) {
    return static_cast<Layer&>(add(std::move(name), std::make_unique<Layer>(options)));
  }
  Module& add(std::string name, std::unique_ptr<Module> child) {
    Module& module = register_module(std::move(name), std::move(child));
    chain_.push_back(module);
    return module;
  }

  const Chain& chain() const { return chain_; }

  std::string_view type() const override { return "sequential"; }
  std::string description() const override { return options_.description; }
  Shape output_shape(const Shape& input) const override { return chain_.output_shape(input); }
  std::optional<std::vector<Shape>> child_inputs(const Shape& input) const override {
    return chain_.inputs(input);
  }

 protected:
  Variable forward(const Variable& input) override { return chain_(input); }
  std::vector<Variable> forward_in_shards(std::span<const Variable> inputs) override {
    return chain_.forward_shards(inputs);
  }

 private:
  Options options_;
  Chain chain_;
};

}  // namespace lacuna
