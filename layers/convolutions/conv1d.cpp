#include "lacuna/layers/convolutions/conv1d.h"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/layers/convolutions/channel_groups.hpp"

namespace lacuna {

Conv1d::Conv1d(const Options& options) : options_(options) {
  const int64_t in = options.in_channels, out = options.out_channels, groups = options.groups;
  if (in < 1 || out < 1 || options.kernel < 1) {
    throw ConfigError(fmt::format(
        "conv1d: in_channels, out_channels and kernel must be at least 1, found {}, {} and {}", in,
        out, options.kernel));
  }
  require_divisible("conv1d", in, out, groups);
  make_parameters({out, in / groups, options.kernel}, WeightUse::Convolution,
                  {options.bias, options.init, options.init_fan_in});
  if (options.length > 0) {
    const LengthWindow window{options.kernel, options.stride, options.padding, options.dilation};
    weight()->convolution = ConvolutionShape{.in_channels = in,
                                             .out_channels = out,
                                             .groups = groups,
                                             .image = {1, options.length},
                                             .window = window.on_images()};
  }
}

Shape Conv1d::output_shape(const Shape& input) const {
  if (input.rank() != 2 || input[0] != options_.in_channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (conv1d): a weight of shape {} needs examples of shape [{}, length], found {}",
        path(), weight()->shape().to_string(), options_.in_channels, input.to_string()));
  }
  const LengthWindow window{options_.kernel, options_.stride, options_.padding, options_.dilation};
  return {options_.out_channels,
          window.output(input[1], fmt::format("layer '{}' (conv1d)", path()))};
}

int64_t Conv1d::uses_per_weight(const Shape& example) const { return output_shape(example)[1]; }

Variable Conv1d::forward(const Variable& input) {
  return conv1d(input, weight(), bias_variable(),
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .dilation = options_.dilation,
                 .groups = options_.groups});
}

}  // namespace lacuna
