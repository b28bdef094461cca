#include "lacuna/framework/kernels/int8/int8_convolution.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/conv/phase_copy.hpp"
#include "lacuna/framework/kernels/int8/int8_groups.hpp"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

namespace lacuna {
namespace {

constexpr int64_t kQuadLine = kImageSlabWidth * kInt8Group;  // bytes

// Image slabs whose channels are quads.
ImageSlabs quad_slabs(const Shape& images) {
  return ImageSlabs(Shape{images[0], int8_quads(images[1]), images[2], images[3]});
}

// The bytes that represent 0 in sixteen examples, as a line.
Array<uint8_t> zero_line(const Int8Epilogue& e, int64_t example) {
  Array<uint8_t> line(static_cast<size_t>(kQuadLine), static_cast<uint8_t>(e.zero));
  for (int64_t i = 0; i < kQuadLine && e.example_zeros != nullptr; ++i) {
    line[static_cast<size_t>(i)] = static_cast<uint8_t>(e.example_zeros[example + i / kInt8Group]);
  }
  return line;
}

// The lines around the pixels of a slab.
void fill_borders(const ImageSlabs& images, uint8_t byte, uint8_t* slab) {
  const auto fill = [&](int64_t first, int64_t lines) {
    std::memset(slab + first * kQuadLine, byte, static_cast<size_t>(lines * kQuadLine));
  };
  fill(0, images.lead_lines());
  for (int64_t plane = 0; plane < images.channels; ++plane) {
    const int64_t first = images.lead_lines() + plane * images.plane_lines();
    for (int64_t row = 0; row < images.height; ++row) {
      fill(first + row * images.row_lines() + images.width, 1);
    }
    const int64_t pixels = images.height * images.row_lines();
    fill(first + pixels, images.plane_lines() - pixels);
  }
  fill(images.slab_lines() - images.lead_lines(), images.lead_lines());
}

struct Int8Task {
  int64_t slab, begin, end;  // rows of the output
};

// Slabs, or parts of their rows if a slab needs no copy.
std::vector<Int8Task> tasks_of(int64_t slabs, Extent output, bool is_whole) {
  constexpr int64_t kPixels = 42 * 8;
  const int64_t most = output.height * output.width / kPixels;
  const int64_t parts =
      is_whole ? 1 : std::clamp<int64_t>(most, 1, std::max<int64_t>(output.height / 2, 1));
  std::vector<Int8Task> tasks;
  for (int64_t slab = 0; slab < slabs; ++slab) {
    for (int64_t part = 0; part < parts; ++part) {
      tasks.push_back({slab, output.height * part / parts, output.height * (part + 1) / parts});
    }
  }
  return tasks;
}

PixelRun rows_of(const ConvPlan& plan, const ImageSlabs& y) {
  return {.from_plane_lines = plan.x.plane_lines,
          .from_row_lines = plan.x.row_lines * plan.x_step.height,
          .from_step = static_cast<int>(plan.x_step.width),
          .to_plane_lines = y.plane_lines(),
          .to_row_lines = y.row_lines(),
          .width = plan.output.width,
          .end = plan.output.height};
}

struct ImageGrids {
  Array<float> inverse = Array<float>(kImageSlabWidth), zero = Array<float>(kImageSlabWidth);
};

void quantize_slab(const internal::Int8Kernels& kernels, const ImageSlabs& images,
                   const ImageGrids& grids, const float* slab, uint8_t* bytes) {
  const int64_t plane = images.plane_lines(), lead = images.lead_lines();
  const int64_t quads = int8_quads(images.channels);
  const auto convert = [&](int64_t from_line, int64_t count, int64_t lines, int64_t to_line) {
    kernels.quantize_lines(slab + from_line * kImageSlabWidth, plane * kImageSlabWidth, count,
                           lines, grids.inverse.data(), grids.zero.data(),
                           bytes + to_line * kQuadLine);
  };
  convert(0, 1, lead, 0);
  for (int64_t quad = 0; quad < quads; ++quad) {
    convert(lead + quad * kInt8Group * plane,
            std::min(images.channels - quad * kInt8Group, kInt8Group), plane, lead + quad * plane);
  }
  convert(0, 1, lead, lead + quads * plane);
  // The four bytes of a border are equal.
  const auto spread = [&](int64_t first) {
    for (int64_t i = 0; i < lead * kImageSlabWidth; ++i) {
      uint8_t* at = bytes + first * kQuadLine + i * kInt8Group;
      std::memset(at, at[0], kInt8Group);
    }
  };
  spread(0);
  spread(lead + quads * plane);
}

}  // namespace

int64_t Int8Filter::bytes() const {
  return static_cast<int64_t>(words.size() * sizeof(int32_t) + quad.size() * sizeof(uint32_t) +
                              row_begin.size() * sizeof(int64_t) +
                              row_sums.size() * sizeof(int32_t));
}

Int8Filter internal::int8_filter_for(const Int8Kernels& kernels, int64_t rows, int64_t channels,
                                     int64_t taps, std::span<const int64_t> row_begin,
                                     std::span<const uint32_t> column_of,
                                     std::span<const int8_t> values) {
  if (channels % kInt8Group != 0) {
    throw ShapeError(fmt::format(
        "a convolution in int8 needs input channels that are a multiple of four, found {}",
        channels));
  }
  Int8Groups groups = int8_tap_groups(rows, taps, row_begin, column_of, values);
  Int8Filter filter{.rows = rows,
                    .channels = channels,
                    .taps = taps,
                    .nnz = static_cast<int64_t>(values.size()),
                    .groups = static_cast<int64_t>(groups.word.size())};
  filter.row_sums = int8_row_sums(rows, row_begin, values);
  if (kernels.splits_words) groups = split_int8_groups(groups);
  filter.row_begin = std::move(groups.row_begin);
  filter.quad = std::move(groups.quad);
  filter.words.assign(groups.word.begin(), groups.word.end());
  return filter;
}

Int8Convolution make_int8_convolution(const Int8Filter& filter, const ConvolutionShape& shape) {
  ConvolutionShape quads = shape;
  quads.in_channels = int8_quads(shape.in_channels);
  Int8Convolution c{.plan = make_conv_plan(quads), .stream = {}, .words = {}};
  const ConvPlan& plan = c.plan;
  const int64_t inputs = plan.input_planes(), planes_of_quad = inputs / quads.in_channels;
  const auto taps = static_cast<uint32_t>(filter.taps);
  c.stream = make_tap_stream(
      [&](const auto& visit) {
        for (int64_t row = 0; row < filter.rows; ++row) {
          const auto begin = static_cast<size_t>(filter.row_begin[static_cast<size_t>(row)]);
          const auto end = static_cast<size_t>(filter.row_begin[static_cast<size_t>(row) + 1]);
          for (size_t i = begin; i < end; ++i) {
            const TapPlace& read = plan.reads[filter.quad[i] % taps];
            visit({.row = row,
                   .plane = filter.quad[i] / taps * planes_of_quad + read.phase,
                   .line = read.row * plan.x.row_lines + read.column,
                   .element = static_cast<uint32_t>(i)});
          }
        }
      },
      filter.rows, inputs, plan.x.plane_lines, std::max<int64_t>(inputs, 1));
  for (const uint32_t element : c.stream.source) c.words.push_back(filter.words[element]);
  return c;
}

int64_t int8_image_bytes(const Shape& images) { return quad_slabs(images).size() * kInt8Group; }

void internal::int8_convolve_by(const Int8Kernels& kernels, const Int8Filter& filter,
                                const Int8Convolution& c, const uint8_t* x, int64_t batch,
                                const Int8Epilogue& epilogue) {
  const ConvPlan& plan = c.plan;
  const Extent image = plan.shape.image, output = plan.output;
  const ImageSlabs in(Shape{batch, plan.shape.in_channels, image.height, image.width});
  const ImageSlabs out(Shape{batch, filter.rows, output.height, output.width});
  const ImageSlabs out_quads = quad_slabs(Shape{batch, filter.rows, output.height, output.width});
  const PixelRun whole = rows_of(plan, out);
  const std::vector<Int8Task> tasks = tasks_of(in.slabs(), output, !plan.x_is_tensor);
  parallel_blocks(static_cast<int64_t>(tasks.size()), [&](int64_t number) {
    const auto [slab, begin, end] = tasks[static_cast<size_t>(number)];
    const uint8_t* from = x + slab * in.slab_lines() * kQuadLine;
    Array<uint8_t> copy;
    if (!plan.x_is_tensor) {
      const Array<uint8_t> border = zero_line(epilogue, slab * kImageSlabWidth);
      copy.resize(static_cast<size_t>(plan.x.slab_lines(plan.input_planes()) * kQuadLine));
      split_phases(planes_of(in), in.channels, plan.shape.window.stride, plan.phases, plan.x,
                   reinterpret_cast<const float*>(from), reinterpret_cast<float*>(copy.data()),
                   reinterpret_cast<const float*>(border.data()));
      from = copy.data();
    }
    uint8_t* bytes = nullptr;
    Array<uint8_t> row_bytes;
    if (epilogue.bytes != nullptr) {
      bytes = epilogue.bytes + slab * out_quads.slab_lines() * kQuadLine;
      if (begin == 0) fill_borders(out_quads, static_cast<uint8_t>(epilogue.grid.zero), bytes);
      bytes += out_quads.lead_lines() * kQuadLine;
      row_bytes.resize(static_cast<size_t>(filter.rows * kInt8TileLines * kImageSlabWidth));
    }
    PixelRun run = whole;
    run.begin = begin, run.end = end;
    kernels.convolve({.stream = &c.stream,
                      .words = c.words.data(),
                      .row_sums = filter.row_sums.data(),
                      .from = from + plan.x.lead_lines * kQuadLine,
                      .run = run,
                      .example = slab * kImageSlabWidth,
                      .first_line = slab * out.slab_lines() + out.lead_lines(),
                      .epilogue = &epilogue,
                      .bytes = bytes,
                      .row_bytes = row_bytes.data()});
  });
}

void internal::int8_quantize_images_by(const Int8Kernels& kernels, const Tensor& images,
                                       const Int8Grid& grid, uint8_t* bytes) {
  const ImageSlabs slabs(images.shape());
  const int64_t to = quad_slabs(images.shape()).slab_lines() * kQuadLine;
  const float* from = images.data(Order::ImageSlabs);
  ImageGrids grids;
  std::ranges::fill(grids.inverse, 1.0f / grid.scale);
  std::ranges::fill(grids.zero, static_cast<float>(grid.zero));
  parallel_blocks(slabs.slabs(), [&](int64_t slab) {
    quantize_slab(kernels, slabs, grids, from + slab * slabs.slab_lines() * kImageSlabWidth,
                  bytes + slab * to);
  });
}

void internal::int8_quantize_image_examples_by(const Int8Kernels& kernels, const Tensor& images,
                                               float* scales, int32_t* zeros, uint8_t* bytes) {
  const ImageSlabs slabs(images.shape());
  const int64_t to = quad_slabs(images.shape()).slab_lines() * kQuadLine;
  const float* values = images.data(Order::ImageSlabs);
  parallel_blocks(slabs.slabs(), [&](int64_t slab) {
    const float* from = values + slab * slabs.slab_lines() * kImageSlabWidth;
    Array<float> low(kImageSlabWidth), high(kImageSlabWidth);
    kernels.line_ranges(from, slabs.slab_lines(), low.data(), high.data());
    ImageGrids grids;
    for (size_t i = 0; i < low.size(); ++i) {
      const Int8Grid grid = int8_grid(low[i], high[i]);
      const auto example = static_cast<size_t>(slab * kImageSlabWidth) + i;
      scales[example] = grid.scale;
      zeros[example] = grid.zero;
      grids.inverse[i] = 1.0f / grid.scale;
      grids.zero[i] = static_cast<float>(grid.zero);
    }
    quantize_slab(kernels, slabs, grids, from, bytes + slab * to);
  });
}

Int8Filter int8_filter(int64_t rows, int64_t channels, int64_t taps,
                       std::span<const int64_t> row_begin, std::span<const uint32_t> column_of,
                       std::span<const int8_t> values) {
  return internal::int8_filter_for(*internal::int8_kernels().front(), rows, channels, taps,
                                   row_begin, column_of, values);
}

void int8_convolve(const Int8Filter& filter, const Int8Convolution& convolution, const uint8_t* x,
                   int64_t batch, const Int8Epilogue& epilogue) {
  internal::int8_convolve_by(*internal::int8_kernels().front(), filter, convolution, x, batch,
                             epilogue);
}

void int8_quantize_images(const Tensor& images, const Int8Grid& grid, uint8_t* bytes) {
  internal::int8_quantize_images_by(*internal::int8_kernels().front(), images, grid, bytes);
}

void int8_quantize_image_examples(const Tensor& images, float* scales, int32_t* zeros,
                                  uint8_t* bytes) {
  internal::int8_quantize_image_examples_by(*internal::int8_kernels().front(), images, scales,
                                            zeros, bytes);
}

}  // namespace lacuna
