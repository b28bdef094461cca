// The tasks of a product are a slab, or a part of its rows where nothing is copied; those of the
// weight gradient are slabs, of which up to kGradientTasks sums are kept and added in their order,
// so that results do not depend on the number of threads.
#include "lacuna/framework/kernels/conv/sparse_convolution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/conv/gather.h"
#include "lacuna/framework/kernels/conv/phase_copy.h"
#include "lacuna/framework/kernels/simd/caches.h"

namespace lacuna {
namespace {

constexpr int64_t kPixelsOfTask = 42 * 8, kGradientTasks = 16;

constexpr int64_t kLineBytes = kImageSlabWidth * static_cast<int64_t>(sizeof(float));

// What a tile reads of a source plane, in lines.
int64_t lines_read(const Window& w, TileSize tile) {
  return (tile.rows + w.kernel.height - 1) * (tile.columns + w.kernel.width - 1);
}

// Two rows of pixels share most of what they read, which pays where the first-level cache bounds
// the product: where it holds no more than half of what a tile reads of all source planes. Else one
// row at a time is read as memory gives it.
int most_tile_rows(const Window& w, int64_t source_planes) {
  constexpr int64_t kBytes = 96 * 1024;
  const bool is_bound = source_planes * lines_read(w, {1, 8}) * kLineBytes > kBytes;
  return w.kernel.height > 1 && is_bound ? 2 : 1;
}

// So many source planes that what a tile of pixels reads of them stays in a first-level cache, or,
// where rows have few nonzeros there, so many that the sums are worth fetching.
int64_t tile_planes(const Window& w, Extent output, int64_t planes, int64_t rows, int64_t nnz) {
  constexpr double kNonzeros = 10.0;
  const TileSize tile = gather_tile(output, most_tile_rows(w, planes));
  const int64_t cache_lines = first_level_bytes() / kLineBytes * 5 / 6;
  const int64_t in_cache = std::max<int64_t>(1, cache_lines / lines_read(w, tile));
  const double per_plane =
      static_cast<double>(nnz) / static_cast<double>(std::max<int64_t>(1, rows * planes));
  const double wanted = std::min(kNonzeros / std::max(per_plane, 1e-9), 1e9);
  const double most = std::max(static_cast<double>(in_cache), wanted);
  const int64_t tiles =
      std::max<int64_t>(1, std::llround(static_cast<double>(planes) / std::max(most, 1.0)));
  return std::max<int64_t>(1, (planes + tiles - 1) / tiles);
}

// The values in stream order.
Array<float> in_stream_order(const TapStream& stream, std::span<const float> values) {
  Array<float> ordered(stream.source.size());
  for (size_t i = 0; i < ordered.size(); ++i) ordered[i] = values[stream.source[i]];
  return ordered;
}

// Memory that a thread keeps for the planes of a slab.
float* scratch(int which, int64_t lines) {
  thread_local Array<float> memory[2];
  Array<float>& block = memory[which];
  const auto floats = static_cast<size_t>(lines * kImageSlabWidth);
  if (block.size() < floats) block = Array<float>(floats);
  return block.data();
}

const float* first_pixel(const Planes& planes, const float* slab) {
  return slab + planes.lead_lines * kImageSlabWidth;
}
float* first_pixel(const Planes& planes, float* slab) {
  return slab + planes.lead_lines * kImageSlabWidth;
}

// One side of a gather: a tensor and, where it is not in the tensor's own planes, their copy.
struct Side {
  Planes tensor, planes;
  bool is_tensor;
  int64_t channels;
  Extent stride{1, 1};
  std::vector<Phase> phases{Phase{}};

  int64_t lines() const {
    return planes.slab_lines(channels * static_cast<int64_t>(phases.size()));
  }
  const float* read(const float* slab, int which) const {
    if (is_tensor) return first_pixel(tensor, slab);
    float* copy = scratch(which, lines());
    split_phases(tensor, channels, stride, phases, planes, slab, copy);
    return first_pixel(planes, copy);
  }
};

struct Tensors {
  ImageSlabs x, y;
};

Tensors tensors_of(const ConvPlan& plan, int64_t batch) {
  ConvolutionShape shape = plan.shape;
  shape.batch = batch;
  return {ImageSlabs(shape.input_shape()), ImageSlabs(shape.output_shape())};
}

Side input_side(const ConvPlan& plan, const ImageSlabs& x) {
  return {planes_of(x), plan.x, plan.x_is_tensor, x.channels, plan.shape.window.stride,
          plan.phases};
}

Side tensor_side(const ImageSlabs& images) {
  const Planes planes = planes_of(images);
  return {planes, planes, true, images.channels};
}

// A gather into a tensor's own planes writes the lines between the rows, too.
Tensor::Padding padding_of(bool is_tensor) {
  return is_tensor ? Tensor::Padding::ZeroButBetweenRows : Tensor::Padding::Zero;
}

PixelRun run_of(const Window& w, const Side& from, const Side& to) {
  return {.from_plane_lines = from.planes.plane_lines,
          .from_row_lines = from.planes.row_lines,
          .to_plane_lines = to.planes.plane_lines,
          .to_row_lines = to.planes.row_lines,
          .width = to.planes.width,
          .begin = 0,
          .end = to.planes.height,
          .ends_rows = to.is_tensor,
          .most_tile_rows =
              most_tile_rows(w, from.channels * static_cast<int64_t>(from.phases.size()))};
}

// Runs a gather slab by slab, in parts where both sides are tensors.
void gather_slabs(const Window& window, const TapStream& stream, const Array<float>& values,
                  const Side& from, const Tensor& source, int64_t source_slab, const Side& to,
                  Tensor& target, int64_t target_slab, int64_t slabs, const float* bias) {
  const float* x = source.data(Order::ImageSlabs);
  float* y = target.mutable_data(Order::ImageSlabs);
  const PixelRun whole = run_of(window, from, to);
  if (from.is_tensor && to.is_tensor) {
    constexpr int64_t kRowsTogether = 4;
    const int64_t rows =
        std::max<int64_t>(1, kPixelsOfTask / std::max<int64_t>(1, whole.width) / kRowsTogether) *
        kRowsTogether;
    const int64_t parts = std::max<int64_t>(1, whole.end / rows);
    parallel_blocks(slabs * parts, [&](int64_t task) {
      const int64_t slab = task / parts, part = task % parts;
      PixelRun run = whole;
      run.begin = part * rows;
      run.end = part + 1 == parts ? whole.end : run.begin + rows;
      gather_pixels(stream, values.data(), first_pixel(from.planes, x + slab * source_slab),
                    first_pixel(to.planes, y + slab * target_slab), bias, run);
    });
    return;
  }
  parallel_blocks(slabs, [&](int64_t slab) {
    const float* read = from.read(x + slab * source_slab, 0);
    float* into = y + slab * target_slab;
    float* written = to.is_tensor ? into : scratch(1, to.lines());
    gather_pixels(stream, values.data(), read, first_pixel(to.planes, written), bias, whole);
    if (!to.is_tensor) {
      join_phases(to.tensor, to.channels, to.stride, to.phases, to.planes, written, into);
    }
  });
}

}  // namespace

SparseConvolution make_sparse_convolution(const ConvolutionShape& shape,
                                          const CsrPositions& positions) {
  SparseConvolution c{.plan = make_conv_plan(shape), .forward = {}, .transposed = {}};
  const ConvPlan& plan = c.plan;
  const int64_t taps = shape.taps(), phases = static_cast<int64_t>(plan.phases.size());
  const auto nnz = static_cast<int64_t>(positions.column.size());
  const auto for_each = [&](const auto& visit) {
    for (int64_t row = 0; row < shape.out_channels; ++row) {
      const auto begin = static_cast<size_t>(positions.row_begin[static_cast<size_t>(row)]);
      const auto end = static_cast<size_t>(positions.row_begin[static_cast<size_t>(row) + 1]);
      for (size_t i = begin; i < end; ++i) {
        const int64_t channel = positions.column[i] / taps;
        const TapPlace& place = plan.places[positions.column[i] % static_cast<size_t>(taps)];
        visit(row, channel, place, static_cast<uint32_t>(i));
      }
    }
  };
  const int64_t inputs = plan.input_planes(), outputs = shape.out_channels;
  c.forward = make_tap_stream(
      [&](const auto& visit) {
        for_each([&](int64_t row, int64_t channel, const TapPlace& place, uint32_t element) {
          visit({.row = row,
                 .plane = channel * phases + place.phase,
                 .line = place.row * plan.x.row_lines + place.column,
                 .element = element});
        });
      },
      outputs, inputs, plan.x.plane_lines,
      tile_planes(shape.window, plan.output, inputs, outputs, nnz));
  c.transposed = make_tap_stream(
      [&](const auto& visit) {
        for_each([&](int64_t row, int64_t channel, const TapPlace& place, uint32_t element) {
          visit({.row = channel * phases + place.phase,
                 .plane = row,
                 .line = -(place.row * plan.dy.row_lines + place.column),
                 .element = element});
        });
      },
      inputs, outputs, plan.dy.plane_lines,
      tile_planes(shape.window, {plan.dx.height, plan.dx.width}, outputs, inputs, nnz));
  return c;
}

Tensor sparse_convolution(const SparseConvolution& c, std::span<const float> values,
                          const Tensor& x, const float* bias) {
  const ConvPlan& plan = c.plan;
  const auto [in, out] = tensors_of(plan, x.shape()[0]);
  Tensor y = Tensor::empty(Shape{out.batch, out.channels, out.height, out.width}, Order::ImageSlabs,
                           Tensor::Padding::ZeroButBetweenRows);
  const Side to = tensor_side(out);
  gather_slabs(plan.shape.window, c.forward, in_stream_order(c.forward, values),
               input_side(plan, in), x, in.slab_lines() * kImageSlabWidth, to, y,
               out.slab_lines() * kImageSlabWidth, out.slabs(), bias);
  return y;
}

Tensor sparse_convolution_input_gradient(const SparseConvolution& c, std::span<const float> values,
                                         const Tensor& dy) {
  const ConvPlan& plan = c.plan;
  const auto [in, out] = tensors_of(plan, dy.shape()[0]);
  Tensor dx = Tensor::empty(Shape{in.batch, in.channels, in.height, in.width}, Order::ImageSlabs,
                            padding_of(plan.dx_is_tensor));
  const Side from{planes_of(out), plan.dy, plan.dy_is_tensor, out.channels};
  Side to = input_side(plan, in);
  to.planes = plan.dx;
  to.is_tensor = plan.dx_is_tensor;
  gather_slabs(plan.shape.window, c.transposed, in_stream_order(c.transposed, values), from, dy,
               out.slab_lines() * kImageSlabWidth, to, dx, in.slab_lines() * kImageSlabWidth,
               out.slabs(), nullptr);
  return dx;
}

void sparse_convolution_weight_gradient(const SparseConvolution& c, const Tensor& dy,
                                        const Tensor& x, Accumulate accumulate,
                                        std::span<float> gradient) {
  const ConvPlan& plan = c.plan;
  const auto [in, out] = tensors_of(plan, x.shape()[0]);
  const Side inputs = input_side(plan, in);
  const Side outputs = tensor_side(out);
  const PixelRun run = run_of(plan.shape.window, inputs, outputs);
  const int64_t slabs = out.slabs(), tasks = std::min(slabs, kGradientTasks);
  const auto nnz = static_cast<int64_t>(c.forward.source.size());
  Array<float> sums(static_cast<size_t>(tasks * nnz));
  parallel_blocks(tasks, [&](int64_t task) {
    float* into = sums.data() + task * nnz;
    std::fill_n(into, nnz, 0.0f);
    for (int64_t slab = slabs * task / tasks; slab < slabs * (task + 1) / tasks; ++slab) {
      const float* from =
          inputs.read(x.data(Order::ImageSlabs) + slab * in.slab_lines() * kImageSlabWidth, 0);
      const float* of =
          outputs.read(dy.data(Order::ImageSlabs) + slab * out.slab_lines() * kImageSlabWidth, 1);
      tap_gradient(c.forward, from, of, into, run);
    }
  });
  constexpr int64_t kGrain = 1 << 14;
  parallel_for(nnz, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float& into = gradient[c.forward.source[static_cast<size_t>(i)]];
      float sum = accumulate == Accumulate::Yes ? into : 0.0f;
      for (int64_t task = 0; task < tasks; ++task) {
        sum += sums[static_cast<size_t>(task * nnz + i)];
      }
      into = sum;
    }
  });
}

}  // namespace lacuna
