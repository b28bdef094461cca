#include "lacuna/layers/tokens/rms_norm.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/norm.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

RmsNorm::RmsNorm(const Options& options) : options_(options) {
  if (options.features < 1 || !(options.eps > 0.0 && options.eps <= 1e30)) {
    throw ConfigError(
        fmt::format("rms_norm: features must be at least 1 and eps above 0, found {} and {:f}",
                    options.features, options.eps));
  }
  const Shape shape{options.features};
  weight_ =
      register_parameter("weight", std::make_shared<Parameter>(shape, Initializer::constant(1.0)));
}

Shape RmsNorm::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.features() != options_.features) {
    throw ShapeError(fmt::format(
        "layer '{}' (rms_norm): a weight of shape {} needs examples of shape [..., {}], found {}",
        path(), weight_->shape().to_string(), options_.features, input.to_string()));
  }
  return input;
}

Variable RmsNorm::forward(const Variable& input) {
  return rms_norm(input, Variable::of(weight_), {.eps = options_.eps});
}

}  // namespace lacuna
