#include "lacuna/framework/kernels/int8/int8_convolution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"
#include "random_values.h"
#include "throws.h"

namespace lacuna::int8_convolution_test {
namespace {

using internal::Int8Kernels;

constexpr Int8Grid kNext{.scale = 0.03f, .zero = 90};

enum class Weights { Random, Extreme };

/// A sparse filter and a batch of images in bytes, with what is around them in scalars.
struct Images {
  Images(const ConvolutionShape& shape_, double density, Weights kind = Weights::Random)
      : shape(shape_), output(shape.output_shape()) {
    const CounterRng rng(5, "int8 images");
    const int64_t columns = shape.in_channels * shape.taps();
    row_begin.push_back(0);
    for (int64_t r = 0; r < shape.out_channels; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const auto i = static_cast<uint64_t>(r * columns + c);
        if ((density < 1.0 && r % 5 == 3) || rng.uniform(i) >= density) continue;
        column.push_back(static_cast<uint32_t>(c));
        const auto drawn = static_cast<int>(rng.below(i, 256));
        values.push_back(static_cast<int8_t>(kind == Weights::Random ? drawn - 128
                                             : drawn % 2 == 0        ? -128
                                                                     : 127));
      }
      row_begin.push_back(static_cast<int64_t>(column.size()));
    }
    const auto padded = static_cast<size_t>((shape.batch + 15) / 16 * 16);
    for (size_t b = 0; b < padded; ++b) {
      example_scales.push_back(0.25f + static_cast<float>(b) / 64.0f);
      example_zeros.push_back(static_cast<int32_t>(b * 37 % 256));
    }
    for (int64_t i = 0; i < shape.input_shape().numel(); ++i) {
      const auto drawn = static_cast<int>(rng.below(static_cast<uint64_t>(i), 256));
      x.push_back(kind == Weights::Random ? drawn : drawn % 3 == 0 ? 0 : 255);
    }
    scales = random_values(shape.out_channels, "scales");
    for (float& scale : scales) scale = (std::abs(scale) + 0.01f) / 4096.0f;
    bias = random_values(shape.out_channels, "bias");
    residual = random_tensor(output, "residual").to(Order::ImageSlabs);
  }

  // Where an example's pixel of a channel is among the bytes of images.
  static size_t place(const Shape& images, int64_t b, int64_t c, int64_t row, int64_t column) {
    const ImageSlabs quads(Shape{images[0], int8_quads(images[1]), images[2], images[3]});
    return static_cast<size_t>(quads.pixel(b, c / 4, row, column) * 4 + c % 4);
  }

  // Bytes whose borders are the examples' zeros, and whose padding lanes are anything.
  std::vector<uint8_t> bytes(const Int8Epilogue& e) const {
    const Shape images = shape.input_shape();
    std::vector<uint8_t> all(static_cast<size_t>(int8_image_bytes(images)));
    const size_t slab = all.size() / ((static_cast<size_t>(images[0]) + 15) / 16);
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t example = i / slab * 16 + i % 64 / 4;
      all[i] = static_cast<uint8_t>(e.example_zeros == nullptr ? e.zero : e.example_zeros[example]);
    }
    for_each(images, [&](int64_t b, int64_t c, int64_t row, int64_t at, size_t flat) {
      all[place(images, b, c, row, at)] = static_cast<uint8_t>(x[flat]);
    });
    return all;
  }

  template <class Visit>
  static void for_each(const Shape& images, const Visit& visit) {
    size_t flat = 0;
    for (int64_t b = 0; b < images[0]; ++b) {
      for (int64_t c = 0; c < images[1]; ++c) {
        for (int64_t row = 0; row < images[2]; ++row) {
          for (int64_t column = 0; column < images[3]; ++column) visit(b, c, row, column, flat++);
        }
      }
    }
  }

  // Σ w (q − zero) from the definition.
  std::vector<int32_t> sums(const Int8Epilogue& e) const {
    std::vector<int32_t> all;
    const Window& w = shape.window;
    for_each(output, [&](int64_t b, int64_t row, int64_t y, int64_t at, size_t) {
      const int32_t zero = e.example_zeros == nullptr ? e.zero : e.example_zeros[b];
      int64_t sum = 0;
      for (auto i = static_cast<size_t>(row_begin[static_cast<size_t>(row)]);
           i < static_cast<size_t>(row_begin[static_cast<size_t>(row) + 1]); ++i) {
        const int64_t channel = column[i] / shape.taps(), tap = column[i] % shape.taps();
        const int64_t from_row =
            y * w.stride.height - w.padding.height + tap / w.kernel.width * w.dilation.height;
        const int64_t from =
            at * w.stride.width - w.padding.width + tap % w.kernel.width * w.dilation.width;
        if (from_row < 0 || from_row >= shape.image.height) continue;
        if (from < 0 || from >= shape.image.width) continue;
        const int64_t place = ((b * shape.in_channels + channel) * shape.image.height + from_row) *
                                  shape.image.width +
                              from;
        sum += int64_t{values[i]} * (x[static_cast<size_t>(place)] - zero);
      }
      all.push_back(static_cast<int32_t>(sum));
    });
    return all;
  }

  Int8Epilogue epilogue(bool is_dynamic = false) const {
    return {.scales = scales.data(),
            .bias = bias.data(),
            .zero = 100,
            .example_scales = is_dynamic ? example_scales.data() : nullptr,
            .example_zeros = is_dynamic ? example_zeros.data() : nullptr};
  }

  // By kernels, floats and bytes in one pass.
  std::pair<std::vector<float>, std::vector<uint8_t>> run(const Int8Kernels& kernels,
                                                          Int8Epilogue e) const {
    const Int8Filter filter = internal::int8_filter_for(
        kernels, shape.out_channels, shape.in_channels, shape.taps(), row_begin, column, values);
    ConvolutionShape sizes = shape;
    sizes.batch = 0;
    const Int8Convolution convolution = make_int8_convolution(filter, sizes);
    Tensor y = Tensor::empty(output, Order::ImageSlabs);
    std::vector<uint8_t> next(static_cast<size_t>(int8_image_bytes(output)), 7);
    e.floats = y.mutable_data(Order::ImageSlabs);
    e.bytes = next.data();
    e.grid = kNext;
    internal::int8_convolve_by(kernels, filter, convolution, bytes(e).data(), shape.batch, e);
    return {y.to_vector(), next};
  }

  // The same with few images, whose residual is row-major.
  std::pair<std::vector<float>, std::vector<uint8_t>> run_pixels(const Int8Kernels& kernels,
                                                                 Int8Epilogue e) const {
    const Int8Filter filter = internal::int8_filter_for(
        kernels, shape.out_channels, shape.in_channels, shape.taps(), row_begin, column, values);
    std::vector<uint8_t> from(static_cast<size_t>(int8_pixel_bytes(shape.input_shape())));
    for_each(shape.input_shape(), [&](int64_t b, int64_t c, int64_t row, int64_t at, size_t flat) {
      from[pixel_place(shape.input_shape(), b, c, row, at)] = static_cast<uint8_t>(x[flat]);
    });
    std::vector<float> y(static_cast<size_t>(output.numel()));
    std::vector<uint8_t> next(static_cast<size_t>(int8_pixel_bytes(output)), 7);
    e.floats = y.data();
    e.bytes = next.data();
    e.grid = kNext;
    internal::int8_convolve_pixels_by(kernels, filter, int8_pixel_convolution(filter, shape),
                                      from.data(), shape.batch, e);
    return {y, next};
  }
  static size_t pixel_place(const Shape& images, int64_t b, int64_t c, int64_t row,
                            int64_t column) {
    const int64_t quad = b * int8_quads(images[1]) + c / 4;
    return static_cast<size_t>(((quad * images[2] + row) * images[3] + column) * 4 + c % 4);
  }

  ConvolutionShape shape;
  Shape output;
  std::vector<int64_t> row_begin;
  std::vector<uint32_t> column;
  std::vector<int8_t> values;
  std::vector<int32_t> x, example_zeros;
  std::vector<float> scales, bias, example_scales;
  Tensor residual;
};

Window window(Extent kernel, int64_t stride, int64_t padding, int64_t dilation = 1) {
  return {.kernel = kernel,
          .stride = {stride, stride},
          .padding = {padding, padding},
          .dilation = {dilation, dilation}};
}

std::vector<Images> all_images() {
  std::vector<Images> all;
  const auto add = [&](int64_t batch, int64_t in, int64_t out, Extent image, const Window& w,
                       double density, Weights kind = Weights::Random) {
    all.emplace_back(
        ConvolutionShape{
            .batch = batch, .in_channels = in, .out_channels = out, .image = image, .window = w},
        density, kind);
  };
  add(17, 8, 6, {9, 11}, window({3, 3}, 1, 1), 0.5);
  add(1, 4, 5, {8, 8}, window({3, 3}, 1, 1), 1.0);
  add(3, 8, 4, {10, 9}, window({3, 3}, 2, 1), 0.4);
  add(16, 12, 9, {5, 7}, window({1, 1}, 1, 0), 0.6);
  add(2, 8, 8, {8, 8}, window({1, 1}, 2, 0), 0.6);
  add(2, 4, 3, {9, 9}, window({5, 5}, 1, 2), 0.3);    // wider borders than a line
  add(2, 4, 4, {13, 12}, window({3, 3}, 3, 1), 0.7);  // a stride that is copied
  add(1, 4, 7, {9, 9}, window({3, 3}, 1, 2, 2), 0.7);
  add(1, 4, 2, {1, 1}, window({1, 1}, 1, 0), 1.0);
  add(4, 8, 5, {6, 17}, window({3, 3}, 1, 1), 0.0);                     // all pruned
  add(2, 64, 20, {7, 8}, window({3, 3}, 1, 1), 1.0, Weights::Extreme);  // saturates pairs
  add(2, 16, 8, {19, 32}, window({3, 3}, 1, 1), 0.5);                   // several tasks
  return all;
}

TEST(Int8Convolution, IsTheExactSumTimesItsScale) {
  for (const Images& p : all_images()) {
    for (const bool is_dynamic : {false, true}) {
      const Int8Epilogue e = p.epilogue(is_dynamic);
      const std::vector<int32_t> sums = p.sums(e);
      for (const Int8Kernels* kernels : internal::int8_kernels()) {
        const std::vector<float> y = p.run(*kernels, e).first;
        size_t bad = 0;
        Images::for_each(p.output, [&](int64_t b, int64_t r, int64_t, int64_t, size_t i) {
          const auto row = static_cast<size_t>(r);
          const float scale =
              is_dynamic ? p.scales[row] * p.example_scales[static_cast<size_t>(b)] : p.scales[row];
          bad += y[i] == std::fma(static_cast<float>(sums[i]), scale, p.bias[row]) ? 0 : 1;
        });
        ASSERT_EQ(bad, 0u) << kernels->name << ' ' << p.output.to_string();
      }
    }
  }
}

TEST(Int8Convolution, AddsTheResidualBeforeItsLastReLU) {
  for (const Images& p : all_images()) {
    Int8Epilogue e = p.epilogue();
    const std::vector<int32_t> sums = p.sums(e);
    const std::vector<float> residual = p.residual.to_vector();
    e.activation = Int8Activation::ReLU;
    e.residual = p.residual.data(Order::ImageSlabs);
    e.rectifies_sum = true;
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      const std::vector<float> y = p.run(*kernels, e).first;
      Images::for_each(p.output, [&](int64_t, int64_t r, int64_t, int64_t, size_t i) {
        const auto row = static_cast<size_t>(r);
        const float first = std::fma(static_cast<float>(sums[i]), p.scales[row], p.bias[row]);
        EXPECT_EQ(y[i], std::max(std::max(first, 0.0f) + residual[i], 0.0f)) << kernels->name;
      });
    }
  }
}

TEST(Int8Convolution, WritesTheBytesOfTheNextProduct) {
  for (const Images& p : all_images()) {
    Int8Epilogue e = p.epilogue();
    e.activation = Int8Activation::ReLU;
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      const auto [y, bytes] = p.run(*kernels, e);
      // Borders too, of examples that are there: those of channels only where there are any.
      const auto images = static_cast<size_t>(p.output[0]);
      std::vector<int> expected(bytes.size(), -1);
      const size_t slab = bytes.size() / ((images + 15) / 16);
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (i / slab * 16 + i % 64 / 4 < images) expected[i] = kNext.zero;
      }
      Images::for_each(Shape{p.output[0], int8_quads(p.output[1]) * 4, p.output[2], p.output[3]},
                       [&](int64_t b, int64_t c, int64_t row, int64_t column, size_t) {
                         expected[Images::place(p.output, b, c, row, column)] = 0;
                       });
      Images::for_each(p.output, [&](int64_t b, int64_t c, int64_t row, int64_t column, size_t i) {
        const float q = std::fma(y[i], 1.0f / kNext.scale, 90.0f);
        expected[Images::place(p.output, b, c, row, column)] =
            static_cast<int>(std::lrint(std::clamp(q, 0.0f, 255.0f)));
      });
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (expected[i] < 0) continue;
        ASSERT_EQ(bytes[i], expected[i]) << kernels->name << ' ' << i;
      }
    }
  }
}

TEST(Int8Pixels, GiveWhatImageSlabsGive) {
  for (const Images& p : all_images()) {
    const std::vector<float> residual = p.residual.to_vector();
    for (const bool is_dynamic : {false, true}) {
      Int8Epilogue e = p.epilogue(is_dynamic);
      e.activation = Int8Activation::GELU;
      e.residual = p.residual.data(Order::ImageSlabs);
      e.rectifies_sum = true;
      for (const Int8Kernels* kernels : internal::int8_kernels()) {
        const auto [y, bytes] = p.run(*kernels, e);
        Int8Epilogue of_pixels = e;
        of_pixels.residual = residual.data();
        const auto [found, found_bytes] = p.run_pixels(*kernels, of_pixels);
        ASSERT_EQ(found, y) << kernels->name << ' ' << p.output.to_string();
        Images::for_each(p.output, [&](int64_t b, int64_t c, int64_t row, int64_t at, size_t) {
          ASSERT_EQ(found_bytes[Images::pixel_place(p.output, b, c, row, at)],
                    bytes[Images::place(p.output, b, c, row, at)]);
        });
      }
    }
  }
}

TEST(Int8Convolution, IsTheSameOnAnyNumberOfThreads) {
  const Images p({.batch = 33,
                  .in_channels = 16,
                  .out_channels = 8,
                  .image = {20, 33},
                  .window = window({3, 3}, 1, 1)},
                 0.5);
  const int before = num_threads();
  std::vector<std::pair<std::vector<float>, std::vector<uint8_t>>> all, of_pixels;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    all.push_back(p.run(*internal::int8_kernels().front(), p.epilogue()));
    of_pixels.push_back(p.run_pixels(*internal::int8_kernels().front(), p.epilogue()));
  }
  set_num_threads(before);
  EXPECT_THAT(of_pixels, testing::Each(of_pixels[0]));
  EXPECT_EQ(all[0].first, all[1].first);
  EXPECT_EQ(all[0].first, all[2].first);
}

TEST(Int8Convolution, OfAZeroScaleIsTheBias) {
  Images p({.batch = 2,
            .in_channels = 4,
            .out_channels = 3,
            .image = {4, 4},
            .window = window({3, 3}, 1, 1)},
           0.9);
  std::ranges::fill(p.scales, 0.0f);
  for (const Int8Kernels* kernels : internal::int8_kernels()) {
    const std::vector<float> y = p.run(*kernels, p.epilogue()).first;
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], p.bias[i / 16 % 3]);
  }
}

TEST(Int8Filter, RefusesChannelsThatAreNoQuads) {
  const std::vector<int64_t> row_begin{0, 1};
  const std::vector<uint32_t> column{5};
  const std::vector<int8_t> values{1};
  expect_throws<ShapeError>([&] { int8_filter(1, 3, 9, row_begin, column, values); },
                            "input channels that are a multiple of four, found 3");
  const Int8Filter filter = int8_filter(1, 4, 9, row_begin, column, values);
  EXPECT_EQ(filter.groups, 1);
  EXPECT_EQ(filter.quad[0], 5u);
}

TEST(Int8Images, AreQuantizedWithTheirBorders) {
  for (const Shape& shape : {Shape{17, 8, 5, 6}, Shape{3, 6, 4, 4}, Shape{16, 1, 1, 1}}) {
    const Tensor x = random_tensor(shape, "x");
    const Tensor slabs = x.to(Order::ImageSlabs);
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      const Int8Grid grid{.scale = 0.01f, .zero = 70};
      std::vector<uint8_t> bytes(static_cast<size_t>(int8_image_bytes(shape)), 9);
      internal::int8_quantize_images_by(*kernels, slabs, grid, bytes.data());
      std::vector<uint8_t> expected(bytes.size(), 70);
      const auto quads = Shape{shape[0], int8_quads(shape[1]) * 4, shape[2], shape[3]};
      for (size_t i = 0; i < bytes.size(); ++i) {  // channels that fill the last quad
        if (shape[1] % 4 != 0) expected[i] = bytes[i];
      }
      Images::for_each(quads, [&](int64_t b, int64_t c, int64_t row, int64_t at, size_t) {
        expected[Images::place(shape, b, c, row, at)] = 0;
      });
      Images::for_each(shape, [&](int64_t b, int64_t c, int64_t row, int64_t at, size_t i) {
        const float q = std::fma(x.data()[i], 1.0f / grid.scale, 70.0f);
        expected[Images::place(shape, b, c, row, at)] =
            static_cast<uint8_t>(std::lrint(std::clamp(q, 0.0f, 255.0f)));
      });
      EXPECT_EQ(bytes, expected) << kernels->name << shape.to_string();

      const auto padded = static_cast<size_t>((shape[0] + 15) / 16 * 16);
      std::vector<float> scales(padded);
      std::vector<int32_t> zeros(padded);
      std::vector<uint8_t> pixels(static_cast<size_t>(int8_pixel_bytes(shape)));
      internal::int8_quantize_pixels_by(*kernels, x.data(), shape, grid, pixels.data());
      Images::for_each(shape, [&](int64_t b, int64_t c, int64_t row, int64_t at, size_t) {
        ASSERT_EQ(pixels[Images::pixel_place(shape, b, c, row, at)],
                  expected[Images::place(shape, b, c, row, at)]);
      });
      internal::int8_quantize_image_examples_by(*kernels, slabs, scales.data(), zeros.data(),
                                                bytes.data());
      const int64_t numel = shape[1] * shape[2] * shape[3];
      Images::for_each(shape, [&](int64_t b, int64_t c, int64_t row, int64_t at, size_t i) {
        const float* own = x.data() + b * numel;
        const auto [low, high] = std::minmax_element(own, own + numel);
        const Int8Grid expected_grid = int8_grid(*low, *high);
        const auto example = static_cast<size_t>(b);
        ASSERT_EQ(scales[example], expected_grid.scale);
        ASSERT_EQ(zeros[example], expected_grid.zero);
        const float back =
            scales[example] *
            static_cast<float>(bytes[Images::place(shape, b, c, row, at)] - zeros[example]);
        ASSERT_NEAR(back, x.data()[i], 0.51f * scales[example]);
      });
    }
  }
}

}  // namespace
}  // namespace lacuna::int8_convolution_test
