#include "lacuna/layers/tokens/swiglu.h"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

Shape SwiGLU::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.features() % 2 != 0) {
    throw ShapeError(
        fmt::format("layer '{}' (swiglu): needs examples of shape [..., 2 features], found {}",
                    path(), input.to_string()));
  }
  return input.with_features(input.features() / 2);
}

Variable SwiGLU::forward(const Variable& input) { return swiglu(input); }

}  // namespace lacuna
