#include "lacuna/layers/group_norm.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/norm.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

GroupNorm::GroupNorm(const Options& options) : options_(options) {
  const int64_t channels = options.channels, groups = options.groups;
  if (channels < 1 || groups < 1 || channels % groups != 0) {
    throw ConfigError(
        fmt::format("group_norm: channels must be divisible by groups, and both at least 1, found "
                    "{} channels and {} groups",
                    channels, groups));
  }
  if (!(options.eps > 0.0 && options.eps <= 1e30)) {
    throw ConfigError(fmt::format("group_norm: eps must be above 0, found {:f}", options.eps));
  }
  const Shape shape{channels};
  weight_ =
      register_parameter("weight", std::make_shared<Parameter>(shape, Initializer::constant(1.0)));
  bias_ =
      register_parameter("bias", std::make_shared<Parameter>(shape, Initializer::constant(0.0)));
}

Shape GroupNorm::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input[0] != options_.channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (group_norm): a weight of shape {} needs examples of shape [{}, ...], found {}",
        path(), weight_->shape().to_string(), options_.channels, input.to_string()));
  }
  return input;
}

Variable GroupNorm::forward(const Variable& input) {
  return group_norm(input, Variable::of(weight_), Variable::of(bias_),
                    {.groups = options_.groups, .eps = options_.eps});
}

}  // namespace lacuna
