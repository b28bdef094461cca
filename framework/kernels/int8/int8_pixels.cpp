#include "lacuna/framework/kernels/int8/int8_pixels.hpp"

#include <algorithm>
#include <cstring>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

namespace lacuna {
namespace {

// Quads after the last one that a vector may read.
constexpr int64_t kSlack = 64;

struct PixelTap {
  int64_t phase, row, column;
};

// The planes, and the place in them that each tap reads.
std::vector<PixelTap> plan_taps(const ConvolutionShape& shape, Int8PixelConvolution& c) {
  const Window& w = shape.window;
  std::vector<PixelTap> taps;
  int64_t last_row = 0, last_column = 0;
  for (int64_t y = 0; y < w.kernel.height; ++y) {
    for (int64_t x = 0; x < w.kernel.width; ++x) {
      const int64_t row = y * w.dilation.height, column = x * w.dilation.width;
      const Int8PixelPlanes::Phase phase{row % w.stride.height, column % w.stride.width};
      const auto is_it = [&](const Int8PixelPlanes::Phase& p) {
        return p.row == phase.row && p.column == phase.column;
      };
      auto found = std::ranges::find_if(c.planes.phases, is_it);
      const int64_t number = found - c.planes.phases.begin();
      if (found == c.planes.phases.end()) c.planes.phases.push_back(phase);
      taps.push_back({number, row / w.stride.height, column / w.stride.width});
      last_row = std::max(last_row, taps.back().row);
      last_column = std::max(last_column, taps.back().column);
    }
  }
  c.planes.height = c.output.height + last_row;
  c.planes.width = c.output.width + last_column;
  return taps;
}

// One phase of a plane of quads; outside of the image, the bytes that represent 0.
void copy_phase(const Int8PixelConvolution& c, const Int8PixelPlanes::Phase& phase,
                uint32_t outside, const uint32_t* image, uint32_t* plane) {
  const ConvolutionShape& s = c.shape;
  const int64_t width = c.planes.width, step = s.window.stride.width;
  const int64_t left = phase.column - s.window.padding.width;  // of the first column, in the image
  const int64_t begin = std::clamp<int64_t>(left >= 0 ? 0 : (step - 1 - left) / step, 0, width);
  const int64_t end = std::clamp<int64_t>((s.image.width - left + step - 1) / step, begin, width);
  for (int64_t y = 0; y < c.planes.height; ++y) {
    const int64_t row = y * s.window.stride.height + phase.row - s.window.padding.height;
    uint32_t* into = plane + y * width;
    if (row < 0 || row >= s.image.height) {
      std::fill_n(into, width, outside);
      continue;
    }
    const uint32_t* from = image + row * s.image.width;
    std::fill_n(into, begin, outside);
    if (step == 1) {
      std::copy(from + (left + begin), from + (left + end), into + begin);
    } else {
      for (int64_t x = begin; x < end; ++x) into[x] = from[left + x * step];
    }
    std::fill(into + end, into + width, outside);
  }
}

// An example's planes.
void copy_planes(const Int8PixelConvolution& c, uint8_t zero, const uint8_t* image,
                 uint32_t* planes) {
  const int64_t quads = int8_quads(c.shape.in_channels);
  const int64_t pixels = c.shape.image.height * c.shape.image.width;
  const uint32_t outside = 0x01010101U * zero;
  for (int64_t quad = 0; quad < quads; ++quad) {
    for (const Int8PixelPlanes::Phase& phase : c.planes.phases) {
      copy_phase(c, phase, outside, reinterpret_cast<const uint32_t*>(image) + quad * pixels,
                 planes);
      planes += c.planes.quads();
    }
  }
  std::fill_n(planes, kSlack, outside);
}

// As if this were the only example, with the grid of all.
struct ExampleEpilogue {
  ExampleEpilogue(const Int8Epilogue& epilogue, int64_t rows, int64_t example)
      : alone(epilogue), scales(epilogue.scales, epilogue.scales + rows) {
    if (epilogue.example_scales == nullptr) return;
    for (float& scale : scales) scale *= epilogue.example_scales[example];
    alone.scales = scales.data();
    alone.zero = epilogue.example_zeros[example];
    alone.example_scales = nullptr;
    alone.example_zeros = nullptr;
  }

  Int8Epilogue alone;
  std::vector<float> scales;
};

void quantize_example(const internal::Int8Kernels& kernels, const float* image, const Shape& shape,
                      const Int8Grid& grid, uint8_t* bytes) {
  const int64_t channels = shape[1], pixels = shape[2] * shape[3];
  const int64_t lines = pixels / kImageSlabWidth, rest = pixels % kImageSlabWidth;
  const Array<float> inverse(kImageSlabWidth, 1.0f / grid.scale);
  const Array<float> zeros(kImageSlabWidth, static_cast<float>(grid.zero));
  for (int64_t channel = 0; channel < channels; channel += kInt8Group) {
    const float* planes = image + channel * pixels;
    const int64_t count = std::min(channels - channel, kInt8Group);
    uint8_t* into = bytes + channel * pixels;
    kernels.quantize_lines(planes, pixels, count, lines, inverse.data(), zeros.data(), into);
    if (rest == 0) continue;
    Array<float> last(kInt8Group * kImageSlabWidth, 0.0f);
    Array<uint8_t> quads(kInt8Group * kImageSlabWidth);
    for (int64_t c = 0; c < count; ++c) {
      std::copy_n(planes + c * pixels + pixels - rest, rest, last.data() + c * kImageSlabWidth);
    }
    kernels.quantize_lines(last.data(), kImageSlabWidth, count, 1, inverse.data(), zeros.data(),
                           quads.data());
    std::copy_n(quads.data(), rest * kInt8Group, into + (pixels - rest) * kInt8Group);
  }
}

// Blocks of rows into which a product is cut for threads, large enough to be worth starting them.
int64_t row_blocks(const Int8Filter& filter, int64_t pixels) {
  constexpr int64_t kWords = 1 << 16;  // with a pixel, and what ends one
  const int64_t work = (filter.groups + 4 * filter.rows) * pixels;
  const int64_t fours = (filter.rows + kInt8Group - 1) / kInt8Group;
  return std::clamp<int64_t>(work / kWords, 1, std::min<int64_t>(num_threads(), fours));
}

}  // namespace

Int8PixelConvolution int8_pixel_convolution(const Int8Filter& filter,
                                            const ConvolutionShape& shape) {
  Int8PixelConvolution c{.shape = shape, .output = shape.output(), .planes = {}, .offsets = {}};
  const std::vector<PixelTap> taps = plan_taps(shape, c);
  const auto phases = static_cast<int64_t>(c.planes.phases.size());
  for (const uint32_t quad : filter.quad) {
    const PixelTap& tap = taps[static_cast<size_t>(quad % filter.taps)];
    const int64_t plane = quad / filter.taps * phases + tap.phase;
    const int64_t at = plane * c.planes.quads() + tap.row * c.planes.width + tap.column;
    c.offsets.push_back(static_cast<int32_t>(at * kInt8Group));
  }
  return c;
}

int64_t int8_few_images() { return internal::int8_kernels().front()->few_images; }

int64_t int8_pixel_bytes(const Shape& images) {
  return images[0] * int8_quads(images[1]) * kInt8Group * images[2] * images[3];
}

void internal::int8_convolve_pixels_by(const Int8Kernels& kernels, const Int8Filter& filter,
                                       const Int8PixelConvolution& c, const uint8_t* x,
                                       int64_t batch, const Int8Epilogue& epilogue) {
  const int64_t in_bytes =
      int8_quads(c.shape.in_channels) * kInt8Group * c.shape.image.height * c.shape.image.width;
  const int64_t pixels = c.output.height * c.output.width;
  const int64_t out_bytes = int8_quads(filter.rows) * kInt8Group * pixels;
  const int64_t planes = int8_quads(c.shape.in_channels) *
                         static_cast<int64_t>(c.planes.phases.size()) * c.planes.quads();
  const int64_t blocks = row_blocks(filter, pixels), row_stride = pixels + kSlack;
  const int64_t fours = (filter.rows + kInt8Group - 1) / kInt8Group;
  for (int64_t example = 0; example < batch; ++example) {
    const ExampleEpilogue own(epilogue, filter.rows, example);
    Array<uint32_t> copy(static_cast<size_t>(planes + kSlack));
    copy_planes(c, static_cast<uint8_t>(own.alone.zero), x + example * in_bytes, copy.data());
    parallel_blocks(blocks, [&](int64_t block) {
      Array<int32_t> sums(static_cast<size_t>(c.span() + kSlack));
      Array<int32_t> closed(static_cast<size_t>(pixels + kSlack));
      Array<uint8_t> row_bytes(static_cast<size_t>(kInt8Group * row_stride));
      kernels.pixels(
          {.filter = &filter,
           .convolution = &c,
           .from = reinterpret_cast<const uint8_t*>(copy.data()),
           .begin_row = fours * block / blocks * kInt8Group,
           .end_row = std::min(fours * (block + 1) / blocks * kInt8Group, filter.rows),
           .first_float = example * filter.rows * pixels,
           .epilogue = &own.alone,
           .bytes = epilogue.bytes == nullptr ? nullptr : epilogue.bytes + example * out_bytes,
           .sums = sums.data(),
           .closed = closed.data(),
           .row_bytes = row_bytes.data(),
           .row_stride = row_stride});
    });
  }
}

void internal::int8_quantize_pixels_by(const Int8Kernels& kernels, const float* images,
                                       const Shape& shape, const Int8Grid& grid, uint8_t* bytes) {
  const int64_t features = shape[1] * shape[2] * shape[3];
  const int64_t out_bytes = int8_pixel_bytes(shape) / std::max<int64_t>(shape[0], 1);
  for (int64_t b = 0; b < shape[0]; ++b) {
    quantize_example(kernels, images + b * features, shape, grid, bytes + b * out_bytes);
  }
}

void int8_convolve_pixels(const Int8Filter& filter, const Int8PixelConvolution& convolution,
                          const uint8_t* x, int64_t batch, const Int8Epilogue& epilogue) {
  internal::int8_convolve_pixels_by(*internal::int8_kernels().front(), filter, convolution, x,
                                    batch, epilogue);
}

void int8_quantize_pixels(const float* images, const Shape& shape, const Int8Grid& grid,
                          uint8_t* bytes) {
  internal::int8_quantize_pixels_by(*internal::int8_kernels().front(), images, shape, grid, bytes);
}

void int8_quantize_pixel_examples(const float* images, const Shape& shape, float* scales,
                                  int32_t* zeros, uint8_t* bytes) {
  const int64_t features = shape[1] * shape[2] * shape[3];
  const int64_t out_bytes = int8_pixel_bytes(shape) / std::max<int64_t>(shape[0], 1);
  for (int64_t b = 0; b < shape[0]; ++b) {
    const float* image = images + b * features;
    const auto [low, high] = std::minmax_element(image, image + features);
    const Int8Grid grid = int8_grid(*low, *high);
    scales[b] = grid.scale;
    zeros[b] = grid.zero;
    quantize_example(*internal::int8_kernels().front(), image, shape, grid, bytes + b * out_bytes);
  }
}

}  // namespace lacuna
