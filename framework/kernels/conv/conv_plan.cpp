#include "lacuna/framework/kernels/conv/conv_plan.hpp"

#include <algorithm>
#include <utility>

namespace lacuna {
namespace {

// Along one dimension, tap t at output o reads input stride · o + shift(t), which is pixel o + q of
// phase a.
struct Line {
  std::vector<int64_t> phase, offset;  // a and q, of each tap
};

Line split(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  Line line;
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const int64_t shift = tap * dilation - padding;
    const int64_t phase = (shift % stride + stride) % stride, offset = (shift - phase) / stride;
    line.phase.push_back(phase);
    line.offset.push_back(offset);
  }
  return line;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Pixels outside of `size` that are read from `count` places, `step` apart, shifted by each of
// `taps`.
Extent border_of(Extent size, Extent count, Extent step, const std::vector<TapPlace>& taps) {
  const auto overhang = [](int64_t pixels, int64_t places, int64_t distance, int64_t displaced) {
    return std::max(-displaced, (places - 1) * distance + displaced - (pixels - 1));
  };
  Extent border{0, 0};
  for (const TapPlace& tap : taps) {
    border.height =
        std::max(border.height, overhang(size.height, count.height, step.height, tap.row));
    border.width =
        std::max(border.width, overhang(size.width, count.width, step.width, tap.column));
  }
  return border;
}

bool is_line(Extent border) { return border.height <= 1 && border.width <= 1; }

Planes make_planes(Extent size, Extent border) {
  Planes planes{.height = size.height, .width = size.width, .row_lines = size.width + border.width};
  planes.plane_lines = ((size.height + border.height) * planes.row_lines) | 1;
  planes.lead_lines = border.height * planes.row_lines + border.width + 1;
  return planes;
}

Planes tensor_planes(int64_t batch, int64_t channels, Extent size) {
  return planes_of(ImageSlabs(Shape{batch, channels, size.height, size.width}));
}

}  // namespace

Planes planes_of(const ImageSlabs& images) {
  return {.height = images.height,
          .width = images.width,
          .row_lines = images.row_lines(),
          .plane_lines = images.plane_lines(),
          .lead_lines = images.lead_lines()};
}

ConvPlan make_conv_plan(const ConvolutionShape& shape) {
  const Window& w = shape.window;
  ConvPlan plan{};
  plan.shape = shape;
  plan.output = shape.output();
  const Extent image = shape.image, out = plan.output;
  const Line rows = split(w.kernel.height, w.stride.height, w.padding.height, w.dilation.height);
  const Line columns = split(w.kernel.width, w.stride.width, w.padding.width, w.dilation.width);
  for (size_t r = 0; r < rows.phase.size(); ++r) {
    for (size_t c = 0; c < columns.phase.size(); ++c) {
      const auto found = std::ranges::find_if(plan.phases, [&](const PixelPhase& p) {
        return p.row == rows.phase[r] && p.column == columns.phase[c];
      });
      const int64_t number = found - plan.phases.begin();
      if (found == plan.phases.end()) plan.phases.push_back({rows.phase[r], columns.phase[c]});
      plan.places.push_back({number, rows.offset[r], columns.offset[c]});
    }
  }
  plan.phase = {ceil_div(image.height, w.stride.height), ceil_div(image.width, w.stride.width)};
  // Kernels take neighbours that are one or two lines apart.
  const bool is_near = w.stride.width <= 2;

  plan.reads = plan.places;
  for (TapPlace& read : plan.reads) {
    const PixelPhase& phase = plan.phases[static_cast<size_t>(read.phase)];
    read = {0, phase.row + read.row * w.stride.height, phase.column + read.column * w.stride.width};
  }
  plan.x_is_tensor = is_near && is_line(border_of(image, out, w.stride, plan.reads));
  if (plan.x_is_tensor) {
    plan.x = tensor_planes(shape.batch, shape.in_channels, image);
    plan.x_step = w.stride;
  } else {
    plan.reads = plan.places;
    plan.x = make_planes(plan.phase, border_of(plan.phase, out, {1, 1}, plan.places));
    plan.x_step = {1, 1};
  }

  std::vector<TapPlace> back = plan.places;
  for (TapPlace& place : back) place.row = -place.row, place.column = -place.column;
  const Extent dy_border = border_of(out, plan.phase, {1, 1}, back);
  plan.dy_is_tensor = is_line(dy_border);
  plan.dy = plan.dy_is_tensor ? tensor_planes(shape.batch, shape.out_channels, out)
                              : make_planes(out, dy_border);
  plan.dx_is_tensor =
      is_near && image.height % w.stride.height == 0 && image.width % w.stride.width == 0;
  plan.dx = plan.dx_is_tensor ? tensor_planes(shape.batch, shape.in_channels, image)
                              : make_planes(plan.phase, {0, 0});
  plan.dx_step = plan.dx_is_tensor ? w.stride : Extent{1, 1};
  return plan;
}

}  // namespace lacuna
