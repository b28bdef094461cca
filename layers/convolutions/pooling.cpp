#include "lacuna/layers/convolutions/pooling.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/pooling.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

void require_images(const Module& layer, const Shape& input) {
  if (input.rank() == 3) return;
  throw ShapeError(
      fmt::format("layer '{}' ({}): needs examples of shape [channels, height, width], found {}",
                  layer.path(), layer.type(), input.to_string()));
}

// *Errors:* ShapeError unless the input is of images or of sequences.
void require_planes(const Module& layer, const Shape& input) {
  if (input.rank() == 2 || input.rank() == 3) return;
  throw ShapeError(fmt::format(
      "layer '{}' ({}): needs examples of shape [channels, height, width] or [channels, length], "
      "found {}",
      layer.path(), layer.type(), input.to_string()));
}

Shape pooled(const Module& layer, const Shape& input, const Window& window) {
  require_planes(layer, input);
  if (2 * window.padding.height > window.kernel.height ||
      2 * window.padding.width > window.kernel.width) {
    throw ShapeError(fmt::format("layer '{}' ({}): padding {} is more than half of the kernel {}",
                                 layer.path(), layer.type(), window.padding.to_string(),
                                 window.kernel.to_string()));
  }
  const std::string what = fmt::format("layer '{}' ({})", layer.path(), layer.type());
  if (input.rank() == 2) return {input[0], window.output({1, input[1]}, what).width};
  const Extent size = window.output({input[1], input[2]}, what);
  return {input[0], size.height, size.width};
}

}  // namespace

Shape MaxPool2d::output_shape(const Shape& input) const {
  return pooled(*this, input,
                {options_.kernel, options_.stride, options_.padding, options_.dilation});
}

Variable MaxPool2d::forward(const Variable& input) {
  return max_pool2d(input, {options_.kernel, options_.stride, options_.padding, options_.dilation});
}

Shape AvgPool2d::output_shape(const Shape& input) const {
  return pooled(*this, input, {options_.kernel, options_.stride, options_.padding});
}

Variable AvgPool2d::forward(const Variable& input) {
  return avg_pool2d(input, {options_.kernel, options_.stride, options_.padding},
                    {.count_include_pad = options_.count_include_pad});
}

Shape GlobalAveragePool::output_shape(const Shape& input) const {
  require_planes(*this, input);
  return {input[0]};
}

Variable GlobalAveragePool::forward(const Variable& input) { return global_average_pool(input); }

Shape SubsamplePad::output_shape(const Shape& input) const {
  require_images(*this, input);
  const Extent& s = options_.stride;
  if (options_.channels < input[0] || s.height < 1 || s.width < 1) {
    throw ShapeError(fmt::format(
        "layer '{}' (subsample_pad): needs a stride of at least 1 and at least the {} channels of "
        "its input {}, found stride {} and {} channels",
        path(), input[0], input.to_string(), s.to_string(), options_.channels));
  }
  return {options_.channels, (input[1] + s.height - 1) / s.height,
          (input[2] + s.width - 1) / s.width};
}

Variable SubsamplePad::forward(const Variable& input) {
  return subsample_pad(input, options_.stride, options_.channels);
}

}  // namespace lacuna
