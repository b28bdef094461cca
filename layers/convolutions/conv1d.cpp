#include "lacuna/layers/convolutions/conv1d.h"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/layers/convolutions/convolution_parameters.hpp"

namespace lacuna {

Conv1d::Conv1d(const Options& options) : options_(options) {
  const int64_t in = options.in_channels, out = options.out_channels, groups = options.groups;
  if (in < 1 || out < 1 || options.kernel < 1) {
    throw ConfigError(fmt::format(
        "conv1d: in_channels, out_channels and kernel must be at least 1, found {}, {} and {}", in,
        out, options.kernel));
  }
  require_divisible("conv1d", in, out, groups);
  const ConvolutionParameters parameters = make_convolution_parameters(
      {out, in / groups, options.kernel},
      {.bias = options.bias, .init = options.init, .init_fan_in = options.init_fan_in});
  weight_ = register_parameter("weight", parameters.weight);
  if (options.length > 0) {
    const LengthWindow window{options.kernel, options.stride, options.padding, options.dilation};
    weight_->convolution = ConvolutionShape{.in_channels = in,
                                            .out_channels = out,
                                            .groups = groups,
                                            .image = {1, options.length},
                                            .window = window.on_images()};
  }
  if (parameters.bias != nullptr) bias_ = register_parameter("bias", parameters.bias);
}

Shape Conv1d::output_shape(const Shape& input) const {
  if (input.rank() != 2 || input[0] != options_.in_channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (conv1d): a weight of shape {} needs examples of shape [{}, length], found {}",
        path(), weight_->shape().to_string(), options_.in_channels, input.to_string()));
  }
  const LengthWindow window{options_.kernel, options_.stride, options_.padding, options_.dilation};
  return {options_.out_channels,
          window.output(input[1], fmt::format("layer '{}' (conv1d)", path()))};
}

int64_t Conv1d::uses_per_weight(const Shape& example) const { return output_shape(example)[1]; }

const ParameterPtr& Conv1d::require_bias() {
  if (bias_ == nullptr) {
    bias_ = register_parameter("bias", std::make_shared<Parameter>(Shape{options_.out_channels},
                                                                   Initializer::constant(0.0)));
  }
  return bias_;
}

Variable Conv1d::forward(const Variable& input) {
  return conv1d(input, weight_, bias_ != nullptr ? Variable::of(bias_) : Variable(),
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .dilation = options_.dilation,
                 .groups = options_.groups});
}

}  // namespace lacuna
