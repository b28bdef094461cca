#include "lacuna/framework/nn/chain.h"

namespace lacuna {

Variable Chain::operator()(const Variable& input) const {
  Variable value = input;
  for (Module* module : modules_) value = (*module)(value);
  return value;
}

std::vector<Variable> Chain::forward_shards(std::span<const Variable> inputs) const {
  std::vector<Variable> values(inputs.begin(), inputs.end());
  for (Module* module : modules_) values = module->forward_shards(values);
  return values;
}

Shape Chain::output_shape(const Shape& input) const {
  Shape shape = input;
  for (const Module* module : modules_) shape = module->output_shape(shape);
  return shape;
}

std::vector<Shape> Chain::inputs(const Shape& input) const {
  std::vector<Shape> shapes;
  Shape shape = input;
  for (const Module* module : modules_) {
    shapes.push_back(shape);
    shape = module->output_shape(shape);
  }
  return shapes;
}

}  // namespace lacuna
