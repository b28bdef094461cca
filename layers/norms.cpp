#include "lacuna/layers/norms.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/norm.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

bool is_eps(double eps) { return eps > 0.0 && eps <= 1e30; }

ParameterPtr filled(int64_t size, double value) {
  return std::make_shared<Parameter>(Shape{size}, Initializer::constant(value));
}

template <class Options>
Options checked(const char* type, const Options& options) {
  if (options.features >= 1 && is_eps(options.eps)) return options;
  throw ConfigError(
      fmt::format("{}: features must be at least 1 and eps above 0, found {} and {:f}", type,
                  options.features, options.eps));
}

enum class At { First, Last };

// The input, whose size at a dimension must be the weight's.
Shape fitting(const Module& layer, const Parameter& weight, const Shape& input, At at) {
  const int64_t size = weight.shape()[0];
  const bool is_last = at == At::Last;
  if (input.rank() >= 1 && (is_last ? input.features() : input[0]) == size) return input;
  const std::string number = std::to_string(size);
  throw ShapeError(
      fmt::format("layer '{}' ({}): a weight of shape {} needs examples of shape [{}], found {}",
                  layer.path(), layer.type(), weight.shape().to_string(),
                  is_last ? "..., " + number : number + ", ...", input.to_string()));
}

}  // namespace

LayerNorm::LayerNorm(const Options& options)
    : options_(checked("layer_norm", options)),
      weight_(register_parameter("weight", filled(options.features, 1.0))),
      bias_(register_parameter("bias", filled(options.features, 0.0))) {}

Shape LayerNorm::output_shape(const Shape& input) const {
  return fitting(*this, *weight_, input, At::Last);
}

Variable LayerNorm::forward(const Variable& input) {
  return layer_norm(input, Variable::of(weight_), Variable::of(bias_), {.eps = options_.eps});
}

RmsNorm::RmsNorm(const Options& options)
    : options_(checked("rms_norm", options)),
      weight_(register_parameter("weight", filled(options.features, 1.0))) {}

Shape RmsNorm::output_shape(const Shape& input) const {
  return fitting(*this, *weight_, input, At::Last);
}

Variable RmsNorm::forward(const Variable& input) {
  return rms_norm(input, Variable::of(weight_), {.eps = options_.eps});
}

GroupNorm::GroupNorm(const Options& options) : options_(options) {
  const int64_t channels = options.channels, groups = options.groups;
  if (channels < 1 || groups < 1 || channels % groups != 0) {
    throw ConfigError(
        fmt::format("group_norm: channels must be divisible by groups, and both at least 1, found "
                    "{} channels and {} groups",
                    channels, groups));
  }
  if (!is_eps(options.eps)) {
    throw ConfigError(fmt::format("group_norm: eps must be above 0, found {:f}", options.eps));
  }
  weight_ = register_parameter("weight", filled(channels, 1.0));
  bias_ = register_parameter("bias", filled(channels, 0.0));
}

Shape GroupNorm::output_shape(const Shape& input) const {
  return fitting(*this, *weight_, input, At::First);
}

Variable GroupNorm::forward(const Variable& input) {
  return group_norm(input, Variable::of(weight_), Variable::of(bias_),
                    {.groups = options_.groups, .eps = options_.eps});
}

}  // namespace lacuna
