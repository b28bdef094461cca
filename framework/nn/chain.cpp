#include "lacuna/framework/nn/chain.h"

namespace lacuna {

Variable Chain::operator()(const Variable& input) const {
  Variable value = input;
  for (Module* module : modules_) value = (*module)(value);
  return value;
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
