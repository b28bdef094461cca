// A task of a product is a slab, or a part of its pixels if nothing is copied. Tasks of the weight
// gradient are slabs; up to kGradientTasks sums are kept and added in order, so that results do not
// depend on the number of threads.
#include "lacuna/framework/kernels/conv/sparse_convolution.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/conv/gather.hpp"
#include "lacuna/framework/kernels/conv/phase_copy.hpp"
#include "lacuna/framework/kernels/images/part_moments.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"

namespace lacuna {
namespace {

constexpr int64_t kPixelsOfTask = 42 * 8, kGradientTasks = 16;

// Lines of a source plane that a tile of outputs, `step` apart in the source, reads.
int64_t lines_read(const Window& w, Extent step, TileSize tile) {
  return ((tile.rows - 1) * step.height + w.kernel.height) *
         ((tile.columns - 1) * step.width + w.kernel.width);
}

// Two rows of pixels share most of what they read. This pays if the first-level cache bounds the
// product: if it holds at most half of what a tile reads of all source planes. Otherwise, one row
// at a time is faster, because it is read in the order of memory.
int most_tile_rows(const Window& w, int64_t source_planes) {
  constexpr int64_t kBytes = 96 * 1024;
  const bool is_bound = source_planes * lines_read(w, {1, 1}, {1, 8}) * kImageLineBytes > kBytes;
  return w.kernel.height > 1 && is_bound ? 2 : 1;
}

// The number of source planes of which a tile's reads stay in a first-level cache or, if rows have
// few nonzeros there, enough planes to make fetching the sums worthwhile.
int64_t tile_planes(const Window& w, Extent step, Extent output, int64_t planes, int64_t rows,
                    int64_t nnz) {
  constexpr double kNonzeros = 15.0;
  const TileSize tile = gather_tile(output, most_tile_rows(w, planes));
  const int64_t cache_lines = first_level_bytes() / kImageLineBytes * 5 / 6;
  const int64_t in_cache = std::max<int64_t>(1, cache_lines / lines_read(w, step, tile));
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

// One side of a gather: a tensor and, if it does not work on the tensor's own planes, their copy.
struct Side {
  Planes tensor, planes;
  bool is_tensor;
  int64_t channels;
  Extent stride{1, 1};                           // of the phases in the tensor
  std::vector<PixelPhase> phases{PixelPhase{}};  // of the planes
  Extent step{1, 1};                             // from a pixel of the gather to the next

  int64_t count() const { return channels * static_cast<int64_t>(phases.size()); }
  int64_t lines() const { return planes.slab_lines(count()); }
  const float* read(const float* slab, int which) const {
    if (is_tensor) return first_pixel(tensor, slab);
    float* copy = scratch(which, lines());
    split_phases(tensor, channels, stride, phases, planes, slab, copy);
    return first_pixel(planes, copy);
  }
  bool has_every_pixel() const {
    return static_cast<int64_t>(phases.size()) == stride.height * stride.width;
  }
  // Lines of each phase's first pixel in the tensor.
  std::vector<int64_t> first_lines() const {
    std::vector<int64_t> lines;
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (const PixelPhase& phase : phases) {
        lines.push_back(channel * tensor.plane_lines + phase.row * tensor.row_lines + phase.column);
      }
    }
    return lines;
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

// What forward reads, and the weight's gradient.
Side input_side(const ConvPlan& plan, const ImageSlabs& x) {
  const Planes tensor = planes_of(x);
  if (plan.x_is_tensor) {
    return {.tensor = tensor,
            .planes = tensor,
            .is_tensor = true,
            .channels = x.channels,
            .step = plan.x_step};
  }
  return {.tensor = tensor,
          .planes = plan.x,
          .is_tensor = false,
          .channels = x.channels,
          .stride = plan.shape.window.stride,
          .phases = plan.phases};
}

Side tensor_side(const ImageSlabs& images) {
  const Planes planes = planes_of(images);
  return {.tensor = planes, .planes = planes, .is_tensor = true, .channels = images.channels};
}

PixelRun run_of(const Window& w, const Side& from, const Side& to, Extent output) {
  return {
      .from_plane_lines = from.planes.plane_lines,
      .from_row_lines = from.planes.row_lines * from.step.height,
      .from_row_step = static_cast<int>(from.step.height),
      .from_step = static_cast<int>(from.step.width),
      .to_plane_lines = to.planes.plane_lines,
      .to_row_lines = to.planes.row_lines * to.step.height,
      .to_step = static_cast<int>(to.step.width),
      .width = output.width,
      .begin = 0,
      .end = output.height,
      .ends_rows = to.is_tensor && to.step == Extent{1, 1},
      .reach = {(w.kernel.height - 1) * w.dilation.height, (w.kernel.width - 1) * w.dilation.width},
      .next = {},
      .most_tile_rows = most_tile_rows(w, from.count())};
}

// A gather that completes rows also writes the lines between them.
Tensor::Padding padding_of(const PixelRun& run) {
  return run.ends_rows ? Tensor::Padding::ZeroButBetweenRows : Tensor::Padding::Zero;
}

// The task that a thread is likely to compute after this one.
int64_t task_after(int64_t task, int64_t tasks) {
  return task + std::min<int64_t>(num_threads(), tasks);
}

// Parts of `size` that a length is cut into, the last one of up to twice the size.
int64_t parts_of(int64_t length, int64_t size) { return std::max<int64_t>(1, length / size); }

// A run over several slabs, cut into tasks of some pixels of a slab.
class RunParts {
 public:
  RunParts(const PixelRun& whole, int64_t slabs)
      : whole_(whole),
        wide_(parts_of(whole.width, kPixelsOfTask)),
        rows_(std::max<int64_t>(4, kPixelsOfTask / whole.width / 4 * 4)),
        parts_(parts_of(whole.end, rows_)),
        slabs_(slabs) {}

  struct Part {
    PixelRun run;
    int64_t slab, column;
  };
  int64_t count() const { return slabs_ * parts_ * wide_; }
  Part operator[](int64_t task) const {
    const int64_t part = task / wide_ % parts_, across = task % wide_;
    Part at{.run = whole_, .slab = task / (parts_ * wide_), .column = across * kPixelsOfTask};
    at.run.begin = part * rows_;
    if (part + 1 < parts_) at.run.end = at.run.begin + rows_;
    at.run.width = across + 1 < wide_ ? kPixelsOfTask : whole_.width - at.column;
    at.run.ends_rows = whole_.ends_rows && across + 1 == wide_;
    return at;
  }

 private:
  const PixelRun& whole_;
  int64_t wide_, rows_, parts_, slabs_;
};

// Runs a gather slab by slab, in parts if both sides are tensors. `statistics`: see
// sparse_convolution.
void gather_slabs(const PixelRun& whole, const TapStream& stream, const Array<float>& values,
                  const Side& from, const Tensor& source, int64_t source_slab, const Side& to,
                  Tensor& target, int64_t target_slab, int64_t slabs, const float* bias,
                  ChannelStatistics* statistics = nullptr) {
  const float* x = source.data(Order::ImageSlabs);
  float* y = target.mutable_data(Order::ImageSlabs);
  if (from.is_tensor && to.is_tensor) {
    const RunParts parts(whole, slabs);
    const auto read = [&](const RunParts::Part& at) {
      return first_pixel(from.planes, x + at.slab * source_slab) +
             at.column * whole.from_step * kImageSlabWidth;
    };
    const auto written = [&](const RunParts::Part& at) {
      return first_pixel(to.planes, y + at.slab * target_slab) +
             at.column * whole.to_step * kImageSlabWidth;
    };
    PartMoments moments(statistics == nullptr ? 0 : to.channels, parts.count());
    parallel_blocks(parts.count(), [&](int64_t task) {
      const RunParts::Part at = parts[task];
      PixelRun run = at.run;
      if (const int64_t after = task_after(task, parts.count()); after < parts.count()) {
        const RunParts::Part next = parts[after];
        run.next = {.from = read(next), .to = written(next), .begin = next.run.begin};
      }
      gather_pixels(stream, values.data(), read(at), written(at), bias, run);
      if (statistics == nullptr) return;
      moments.take(task, ImageSlabs(target.shape()),
                   {.slab = at.slab,
                    .rows = {run.begin, run.end},
                    .columns = {at.column, at.column + run.width}},
                   y);
    });
    if (statistics != nullptr) *statistics = moments.joined();
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
  if (statistics != nullptr) *statistics = channel_statistics(target);
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
        visit(row, positions.column[i] / taps, positions.column[i] % static_cast<size_t>(taps),
              static_cast<uint32_t>(i));
      }
    }
  };
  const int64_t inputs = plan.input_planes(), outputs = shape.out_channels;
  const int64_t planes_of_input = inputs / shape.in_channels;
  c.forward = make_tap_stream(
      [&](const auto& visit) {
        for_each([&](int64_t row, int64_t channel, size_t tap, uint32_t element) {
          const TapPlace& read = plan.reads[tap];
          visit({.row = row,
                 .plane = channel * planes_of_input + read.phase,
                 .line = read.row * plan.x.row_lines + read.column,
                 .element = element});
        });
      },
      outputs, inputs, plan.x.plane_lines,
      tile_planes(shape.window, plan.x_step, plan.output, inputs, outputs, nnz));
  c.transposed = make_tap_stream(
      [&](const auto& visit) {
        for_each([&](int64_t row, int64_t channel, size_t tap, uint32_t element) {
          const TapPlace& place = plan.places[tap];
          visit({.row = channel * phases + place.phase,
                 .plane = row,
                 .line = -(place.row * plan.dy.row_lines + place.column),
                 .element = element});
        });
      },
      plan.gradient_planes(), outputs, plan.dy.plane_lines,
      tile_planes(shape.window, {1, 1}, plan.phase, outputs, plan.gradient_planes(), nnz));
  return c;
}

Tensor sparse_convolution(const SparseConvolution& c, std::span<const float> values,
                          const Tensor& x, const float* bias, ChannelStatistics* statistics) {
  const ConvPlan& plan = c.plan;
  const auto [in, out] = tensors_of(plan, x.shape()[0]);
  const Side from = input_side(plan, in), to = tensor_side(out);
  const PixelRun run = run_of(plan.shape.window, from, to, plan.output);
  Tensor y = Tensor::empty(Shape{out.batch, out.channels, out.height, out.width}, Order::ImageSlabs,
                           padding_of(run));
  gather_slabs(run, c.forward, in_stream_order(c.forward, values), from, x,
               in.slab_lines() * kImageSlabWidth, to, y, out.slab_lines() * kImageSlabWidth,
               out.slabs(), bias, statistics);
  return y;
}

Tensor sparse_convolution_input_gradient(const SparseConvolution& c, std::span<const float> values,
                                         const Tensor& dy) {
  const ConvPlan& plan = c.plan;
  const auto [in, out] = tensors_of(plan, dy.shape()[0]);
  Side from = tensor_side(out);
  from.planes = plan.dy;
  from.is_tensor = plan.dy_is_tensor;
  const Side to{.tensor = planes_of(in),
                .planes = plan.dx,
                .is_tensor = plan.dx_is_tensor,
                .channels = in.channels,
                .stride = plan.shape.window.stride,
                .phases = plan.phases,
                .step = plan.dx_step};
  PixelRun run = run_of(plan.shape.window, from, to, plan.phase);
  std::vector<int64_t> planes;
  if (plan.dx_is_tensor) {
    planes = to.first_lines();
    run.to_planes = planes.data();
  }
  const Shape shape{in.batch, in.channels, in.height, in.width};
  Tensor dx = plan.dx_is_tensor && !to.has_every_pixel()
                  ? Tensor::zeros(shape, Order::ImageSlabs)
                  : Tensor::empty(shape, Order::ImageSlabs, padding_of(run));
  gather_slabs(run, c.transposed, in_stream_order(c.transposed, values), from, dy,
               out.slab_lines() * kImageSlabWidth, to, dx, in.slab_lines() * kImageSlabWidth,
               out.slabs(), nullptr);
  return dx;
}

void sparse_convolution_weight_gradient(const SparseConvolution& c, const Tensor& dy,
                                        const Tensor& x, Accumulate accumulate,
                                        std::span<float> gradient, float* dy_sums) {
  const ConvPlan& plan = c.plan;
  const Tensors tensors = tensors_of(plan, x.shape()[0]);
  const ImageSlabs &in = tensors.x, &out = tensors.y;
  const Side inputs = input_side(plan, in);
  const Side outputs = tensor_side(out);
  const PixelRun run = run_of(plan.shape.window, inputs, outputs, plan.output);
  const int64_t slabs = out.slabs(), tasks = std::min(slabs, kGradientTasks);
  const auto nnz = static_cast<int64_t>(c.forward.source.size());
  Array<float> sums(static_cast<size_t>(tasks * nnz));
  const int64_t lanes = dy_sums == nullptr ? 0 : out.channels * kImageSlabWidth;
  Array<float> lines(static_cast<size_t>(tasks * lanes));  // of dy, added up
  parallel_blocks(tasks, [&](int64_t task) {
    float* into = sums.data() + task * nnz;
    std::fill_n(into, nnz, 0.0f);
    float* line = lanes == 0 ? nullptr : lines.data() + task * lanes;
    std::fill_n(line, lanes, 0.0f);
    for (int64_t slab = slabs * task / tasks; slab < slabs * (task + 1) / tasks; ++slab) {
      const float* from =
          inputs.read(x.data(Order::ImageSlabs) + slab * in.slab_lines() * kImageSlabWidth, 0);
      const float* of =
          outputs.read(dy.data(Order::ImageSlabs) + slab * out.slab_lines() * kImageSlabWidth, 1);
      PixelRun at = run;
      const bool is_last = slab + 1 == slabs * (task + 1) / tasks;
      const int64_t after = is_last ? slab + slabs * task_after(0, tasks) / tasks : slab + 1;
      if (inputs.is_tensor && outputs.is_tensor && after < slabs) {
        at.next = {.from = from + (after - slab) * in.slab_lines() * kImageSlabWidth,
                   .to = of + (after - slab) * out.slab_lines() * kImageSlabWidth};
      }
      tap_gradient(c.forward, from, of, into, at, line);
    }
  });
  for (int64_t channel = 0; dy_sums != nullptr && channel < out.channels; ++channel) {
    double sum = 0.0;
    for (int64_t task = 0; task < tasks; ++task) {
      const float* line = lines.data() + task * lanes + channel * kImageSlabWidth;
      for (int64_t i = 0; i < kImageSlabWidth; ++i) sum += line[i];
    }
    dy_sums[channel] = static_cast<float>(sum);
  }
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
