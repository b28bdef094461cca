#include "lacuna/layers/linear.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

Linear::Linear(const Options& options) : options_(options) {
  const int64_t in = options.in_features, out = options.out_features;
  if (in < 1 || out < 1) {
    throw ConfigError(fmt::format(
        "linear: in_features and out_features must be at least 1, found {} and {}", in, out));
  }
  make_parameters({out, in}, WeightUse::Linear, {options.bias, options.init, options.init_fan_in});
}

Shape Linear::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.features() != options_.in_features) {
    throw ShapeError(fmt::format(
        "layer '{}' (linear): a weight of shape {} needs examples of shape [..., {}], found {}",
        path(), weight()->shape().to_string(), options_.in_features, input.to_string()));
  }
  return input.with_features(options_.out_features);
}

Variable Linear::forward(const Variable& input) { return linear(input, weight(), bias_variable()); }

}  // namespace lacuna
