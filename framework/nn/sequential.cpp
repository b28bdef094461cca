#include "lacuna/framework/nn/sequential.h"

namespace lacuna {

Shape Sequential::output_shape(const Shape& input) const {
  Shape shape = input;
  for (const auto& [name, child] : children()) shape = child->output_shape(shape);
  return shape;
}

Variable Sequential::forward(const Variable& input) {
  Variable value = input;
  for (const auto& [name, child] : children()) value = (*child)(value);
  return value;
}

}  // namespace lacuna
