#include "lacuna/layers/convolutions/conv2d.h"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/layers/convolutions/channel_groups.hpp"

namespace lacuna {

Conv2d::Conv2d(const Options& options) : options_(options) {
  const int64_t in = options.in_channels, out = options.out_channels, groups = options.groups;
  const Extent& k = options.kernel;
  if (in < 1 || out < 1 || k.height < 1 || k.width < 1) {
    throw ConfigError(fmt::format(
        "conv2d: in_channels, out_channels and kernel must be at least 1, found {}, {} and {}", in,
        out, k.to_string()));
  }
  require_divisible("conv2d", in, out, groups);
  make_parameters({out, in / groups, k.height, k.width}, WeightUse::Convolution,
                  {options.bias, options.init, options.init_fan_in});
  if (options.image.height > 0 && options.image.width > 0) {
    weight()->convolution = ConvolutionShape{.in_channels = in,
                                             .out_channels = out,
                                             .groups = groups,
                                             .image = options.image,
                                             .window = {.kernel = k,
                                                        .stride = options.stride,
                                                        .padding = options.padding,
                                                        .dilation = options.dilation}};
  }
}

Shape Conv2d::output_shape(const Shape& input) const {
  if (input.rank() != 3 || input[0] != options_.in_channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (conv2d): a weight of shape {} needs examples of shape [{}, height, width], "
        "found {}",
        path(), weight()->shape().to_string(), options_.in_channels, input.to_string()));
  }
  const Window window{options_.kernel, options_.stride, options_.padding, options_.dilation};
  const Extent size =
      window.output({input[1], input[2]}, fmt::format("layer '{}' (conv2d)", path()));
  return {options_.out_channels, size.height, size.width};
}

int64_t Conv2d::uses_per_weight(const Shape& example) const {
  const Shape output = output_shape(example);
  return output[1] * output[2];
}

Variable Conv2d::forward(const Variable& input) {
  return conv2d(input, weight(), bias_variable(),
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .dilation = options_.dilation,
                 .groups = options_.groups,
                 .algorithms = algorithms_});
}

}  // namespace lacuna
