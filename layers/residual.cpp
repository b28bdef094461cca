#include "lacuna/layers/residual.h"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sharded_batch.h"

namespace lacuna {

Module& Residual::append(Chain& chain, std::string name, std::unique_ptr<Module> child) {
  Module& module = register_module(std::move(name), std::move(child));
  chain.push_back(module);
  return module;
}

void Residual::require_equal(const Shape& layers, const Shape& shortcut) const {
  if (layers == shortcut) return;
  throw ShapeError(fmt::format(
      "layer '{}' (residual): its layers give shape {}, its {} shape {}; they are added, so they "
      "must be equal",
      path(), layers.to_string(), shortcut_.empty() ? "input, the shortcut, has" : "shortcut gives",
      shortcut.to_string()));
}

Shape Residual::output_shape(const Shape& input) const {
  const Shape shape = layers_.output_shape(input);
  require_equal(shape, shortcut_.output_shape(input));
  return shape;
}

std::optional<std::vector<Shape>> Residual::child_inputs(const Shape& input) const {
  const std::vector<Shape> of_layers = layers_.inputs(input), of_shortcut = shortcut_.inputs(input);
  size_t layer = 0, shortcut = 0;
  std::vector<Shape> shapes;
  for (const auto& [name, child] : children()) {  // in the order of addition
    const bool is_shortcut =
        std::ranges::find(shortcut_.modules(), child) != shortcut_.modules().end();
    shapes.push_back(is_shortcut ? of_shortcut[shortcut++] : of_layers[layer++]);
  }
  return shapes;
}

std::string Residual::description() const {
  std::string text;
  for (const auto& [name, child] : children()) {
    if (std::ranges::find(shortcut_.modules(), child) == shortcut_.modules().end()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", child->type(), name);
  }
  return "shortcut: " + (text.empty() ? "identity" : text);
}

Variable Residual::joined(const Variable& layers, const Variable& shortcut) const {
  require_equal(layers.shape(), shortcut.shape());  // otherwise the sum would broadcast
  return lacuna::add(layers, shortcut);
}

Variable Residual::forward(const Variable& input) {
  const Variable y = layers_(input);
  return joined(y, shortcut_(input));
}

std::vector<Variable> Residual::forward_in_shards(std::span<const Variable> inputs) {
  std::vector<Variable> y = layers_.forward_shards(inputs);
  const std::vector<Variable> kept = shortcut_.forward_shards(inputs);
  for_each_shard([&](size_t i) { y[i] = joined(y[i], kept[i]); });
  return y;
}

}  // namespace lacuna
