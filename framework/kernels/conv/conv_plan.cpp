#include "lacuna/framework/kernels/conv/conv_plan.h"

#include <algorithm>
#include <utility>

namespace lacuna {
namespace {

// Along one dimension: tap t at output o reads input stride · o + shift(t), which is pixel o + q of
// the phase a.
struct Line {
  std::vector<int64_t> phase, offset;  // a and q, of each tap
  int64_t least = 0, most = 0;         // of q
};

Line split(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  Line line;
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const int64_t shift = tap * dilation - padding;
    const int64_t phase = (shift % stride + stride) % stride, offset = (shift - phase) / stride;
    line.phase.push_back(phase);
    line.offset.push_back(offset);
    line.least = tap == 0 ? offset : std::min(line.least, offset);
    line.most = tap == 0 ? offset : std::max(line.most, offset);
  }
  return line;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Pixels that are read outside of `size` by outputs 0 … count − 1 displaced by least … most.
int64_t overhang(int64_t size, int64_t count, int64_t least, int64_t most) {
  return std::max({int64_t{0}, -least, count - 1 + most - (size - 1)});
}

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
      const auto found = std::ranges::find_if(plan.phases, [&](const Phase& p) {
        return p.row == rows.phase[r] && p.column == columns.phase[c];
      });
      const int64_t number = found - plan.phases.begin();
      if (found == plan.phases.end()) plan.phases.push_back({rows.phase[r], columns.phase[c]});
      plan.places.push_back({number, rows.offset[r], columns.offset[c]});
    }
  }
  const Extent phase{ceil_div(image.height, w.stride.height),
                     ceil_div(image.width, w.stride.width)};
  const bool is_strided = w.stride != Extent{1, 1};

  const Extent x_border{overhang(phase.height, out.height, rows.least, rows.most),
                        overhang(phase.width, out.width, columns.least, columns.most)};
  plan.x_is_tensor = !is_strided && x_border.height <= 1 && x_border.width <= 1;
  plan.x = plan.x_is_tensor ? tensor_planes(shape.batch, shape.in_channels, image)
                            : make_planes(phase, x_border);

  const Extent dy_border{overhang(out.height, phase.height, -rows.most, -rows.least),
                         overhang(out.width, phase.width, -columns.most, -columns.least)};
  plan.dy_is_tensor = dy_border.height <= 1 && dy_border.width <= 1;
  plan.dy = plan.dy_is_tensor ? tensor_planes(shape.batch, shape.out_channels, out)
                              : make_planes(out, dy_border);
  plan.dx_is_tensor = !is_strided;
  plan.dx = plan.dx_is_tensor ? tensor_planes(shape.batch, shape.in_channels, image)
                              : make_planes(phase, {0, 0});
  return plan;
}

}  // namespace lacuna
