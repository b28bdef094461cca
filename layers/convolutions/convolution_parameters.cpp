#include "lacuna/layers/convolutions/convolution_parameters.hpp"

#include <fmt/core.h>

#include <memory>

#include "lacuna/framework/core/error.h"

namespace lacuna {

ConvolutionParameters make_convolution_parameters(const Shape& shape, const ConvolutionDraw& draw) {
  const Fans fans = fans_of(shape);
  const int64_t fan_in = draw.init_fan_in.inputs(fans.in), fan_out = fans.out;
  const Initializer initializer = draw.init_fan_in.counts_nonzeros()
                                      ? make_initializer_for_nonzeros(draw.init, fan_in, fan_out)
                                      : make_initializer(draw.init, fan_in, fan_out);
  ConvolutionParameters parameters{.weight = std::make_shared<Parameter>(shape, initializer),
                                   .bias = nullptr};
  parameters.weight->use = WeightUse::Convolution;
  if (draw.bias) {
    const bool is_zero = draw.init.zero_bias();
    parameters.bias = std::make_shared<Parameter>(
        Shape{shape[0]}, is_zero ? Initializer::constant(0.0) : default_linear(fan_in));
  }
  return parameters;
}

void require_divisible(const char* layer, int64_t in_channels, int64_t out_channels,
                       int64_t groups) {
  if (groups >= 1 && in_channels % groups == 0 && out_channels % groups == 0) return;
  throw ConfigError(fmt::format(
      "{}: groups must divide the channels, found {} groups of {} input and {} output channels",
      layer, groups, in_channels, out_channels));
}

}  // namespace lacuna
