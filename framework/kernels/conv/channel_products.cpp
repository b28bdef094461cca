// The tasks of a product are rows of pixels of a slab; those of the weight gradient are slabs, of
// which up to kGradientParts sums are kept and added in their order, so that results do not depend
// on the number of threads.
#include "lacuna/framework/kernels/conv/channel_products.hpp"

#include <algorithm>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/conv/channel_lines.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

namespace lacuna {
namespace {

constexpr int64_t kPixelsOfPart = 256;  // or a row
constexpr int64_t kGradientParts = 16;
// Pixels of which the weight gradient goes through all channels: their lines stay in a cache.
constexpr int64_t kPixelsAtOnce = 64;

int64_t rows_of(int64_t pixels, int64_t width, int64_t height) {
  return std::clamp<int64_t>(pixels / std::max<int64_t>(1, width), 1, height);
}

// Calls `body(slab, first row, rows)` for parts of all slabs.
template <class Body>
void for_each_part(int64_t slabs, Extent pixels, const Body& body) {
  const int64_t rows = rows_of(kPixelsOfPart, pixels.width, pixels.height);
  const int64_t parts = (pixels.height + rows - 1) / rows;
  parallel_blocks(slabs * parts, [&](int64_t task) {
    const int64_t first = task % parts * rows;
    body(task / parts, first, std::min(rows, pixels.height - first));
  });
}

// The sizes of a run from `from` to `to`, of which either has `step` rows and lines for a pixel.
ChannelRun run_between(const ImageSlabs& from, Extent from_step, const ImageSlabs& to,
                       Extent to_step, Extent pixels) {
  return {.from_plane = from.plane_lines() * kImageSlabWidth,
          .to_plane = to.plane_lines() * kImageSlabWidth,
          .from_row = from.row_lines() * from_step.height * kImageSlabWidth,
          .to_row = to.row_lines() * to_step.height * kImageSlabWidth,
          .from_step = static_cast<int>(from_step.width),
          .to_step = static_cast<int>(to_step.width),
          .width = pixels.width,
          .to_width = to.width,
          .inputs = from.channels,
          .outputs = to.channels};
}

}  // namespace

bool has_channel_products(const ConvolutionShape& shape) {
  const Window& w = shape.window;
  return !use_reference_kernels() && shape.groups == 1 && w.kernel == Extent{1, 1} &&
         w.padding == Extent{0, 0} && w.stride.height <= 2 && w.stride.width <= 2;
}

Tensor channel_products(const ConvolutionShape& shape, const float* weight, const Tensor& x,
                        const float* bias) {
  Tensor y =
      Tensor::empty(shape.output_shape(), Order::ImageSlabs, Tensor::Padding::ZeroButBetweenRows);
  const ImageSlabs in(shape.input_shape()), out(shape.output_shape());
  const Extent stride = shape.window.stride, pixels = shape.output();
  const float* from = x.data(Order::ImageSlabs);
  float* to = y.mutable_data(Order::ImageSlabs);
  ChannelRun whole = run_between(in, stride, out, {1, 1}, pixels);
  whole.weight = weight, whole.bias = bias;
  whole.weight_output = shape.in_channels, whole.weight_input = 1;
  for_each_part(out.slabs(), pixels, [&](int64_t slab, int64_t first, int64_t rows) {
    ChannelRun run = whole;
    run.from = from + in.line(slab, 0, first * stride.height, 0);
    run.to = to + out.line(slab, 0, first, 0);
    run.rows = rows;
    multiply_channels(run);
  });
  return y;
}

Tensor channel_input_gradient(const ConvolutionShape& shape, const float* weight,
                              const Tensor& dy) {
  Tensor dx =
      Tensor::empty(shape.input_shape(), Order::ImageSlabs, Tensor::Padding::ZeroButBetweenRows);
  const ImageSlabs in(shape.input_shape()), out(shape.output_shape());
  const Extent stride = shape.window.stride, pixels = shape.output();
  const float* from = dy.data(Order::ImageSlabs);
  float* to = dx.mutable_data(Order::ImageSlabs);
  ChannelRun whole = run_between(out, {1, 1}, in, stride, pixels);
  whole.weight = weight;
  whole.weight_output = 1, whole.weight_input = shape.in_channels;
  for_each_part(in.slabs(), pixels, [&](int64_t slab, int64_t first, int64_t rows) {
    ChannelRun run = whole;
    run.from = from + out.line(slab, 0, first, 0);
    run.to = to + in.line(slab, 0, first * stride.height, 0);
    run.rows = rows;
    multiply_channels(run);
    for (int64_t channel = 0; stride.height == 2 && channel < in.channels; ++channel) {
      for (int64_t row = 2 * first + 1; row < std::min(2 * (first + rows), in.height); row += 2) {
        std::fill_n(to + in.line(slab, channel, row, 0), in.row_lines() * kImageSlabWidth, 0.0f);
      }
    }
  });
  return dx;
}

void channel_weight_gradient(const ConvolutionShape& shape, const Tensor& dy, const Tensor& x,
                             Accumulate accumulate, std::span<float> gradient) {
  const ImageSlabs in(shape.input_shape()), out(shape.output_shape());
  const Extent stride = shape.window.stride, pixels = shape.output();
  const int64_t slabs = out.slabs(), tasks = std::min(slabs, kGradientParts);
  const int64_t rows = rows_of(kPixelsAtOnce, pixels.width, pixels.height);
  const auto size = static_cast<int64_t>(gradient.size());
  const float *inputs = x.data(Order::ImageSlabs), *outputs = dy.data(Order::ImageSlabs);
  Array<float> sums(static_cast<size_t>(tasks * size));
  parallel_blocks(tasks, [&](int64_t task) {
    float* into = sums.data() + task * size;
    std::fill_n(into, size, 0.0f);
    for (int64_t slab = slabs * task / tasks; slab < slabs * (task + 1) / tasks; ++slab) {
      for (int64_t row = 0; row < pixels.height; row += rows) {
        add_channel_gradient({.x = inputs + in.line(slab, 0, row * stride.height, 0),
                              .dy = outputs + out.line(slab, 0, row, 0),
                              .x_plane = in.plane_lines() * kImageSlabWidth,
                              .dy_plane = out.plane_lines() * kImageSlabWidth,
                              .x_row = in.row_lines() * stride.height * kImageSlabWidth,
                              .dy_row = out.row_lines() * kImageSlabWidth,
                              .x_step = static_cast<int>(stride.width),
                              .rows = std::min(rows, pixels.height - row),
                              .width = pixels.width,
                              .inputs = in.channels,
                              .outputs = out.channels,
                              .gradient = into});
      }
    }
  });
  constexpr int64_t kGrain = 1 << 14;
  parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float sum = accumulate == Accumulate::Yes ? gradient[static_cast<size_t>(i)] : 0.0f;
      for (int64_t task = 0; task < tasks; ++task) {
        sum += sums[static_cast<size_t>(task * size + i)];
      }
      gradient[static_cast<size_t>(i)] = sum;
    }
  });
}

}  // namespace lacuna
