// The products of sparse convolutions against sums in double, over sizes that exercise every copy.
#include "lacuna/framework/kernels/conv/sparse_convolution.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::sparse_convolution_test {
namespace {

struct Positions {
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column;
  CsrPositions view() const { return {row_begin, column}; }
};

// About `density` of the weight, the first row empty and the last one whole.
Positions positions_of(const ConvolutionShape& s, double density) {
  const CounterRng rng(3, "positions");
  Positions p;
  const int64_t columns = s.in_channels * s.taps();
  for (int64_t row = 0; row < s.out_channels; ++row) {
    for (int64_t c = 0; c < columns; ++c) {
      const bool is_drawn = rng.uniform(static_cast<uint64_t>(row * columns + c)) < density;
      const bool is_last = row + 1 == s.out_channels && s.out_channels > 1;
      if (is_last || (is_drawn && (row > 0 || s.out_channels == 1))) {
        p.column.push_back(static_cast<uint32_t>(c));
      }
    }
    p.row_begin.push_back(static_cast<int64_t>(p.column.size()));
  }
  return p;
}

// Calls `visit(element, flat index in x, flat index in y)` for each product of the convolution.
template <class Visit>
void for_each_product(const ConvolutionShape& s, const Positions& p, const Visit& visit) {
  const Extent out = s.output();
  const Window& w = s.window;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t row = 0; row < s.out_channels; ++row) {
      for (int64_t i = p.row_begin[static_cast<size_t>(row)];
           i < p.row_begin[static_cast<size_t>(row) + 1]; ++i) {
        const int64_t column = p.column[static_cast<size_t>(i)];
        const int64_t c = column / s.taps(), tap = column % s.taps();
        const int64_t ky = tap / w.kernel.width, kx = tap % w.kernel.width;
        for (int64_t h = 0; h < out.height; ++h) {
          const int64_t y = h * w.stride.height + ky * w.dilation.height - w.padding.height;
          if (y < 0 || y >= s.image.height) continue;
          for (int64_t v = 0; v < out.width; ++v) {
            const int64_t x = v * w.stride.width + kx * w.dilation.width - w.padding.width;
            if (x < 0 || x >= s.image.width) continue;
            visit(i, ((n * s.in_channels + c) * s.image.height + y) * s.image.width + x,
                  ((n * s.out_channels + row) * out.height + h) * out.width + v);
          }
        }
      }
    }
  }
}

std::vector<ConvolutionShape> shapes() {
  std::vector<ConvolutionShape> all;
  const auto add = [&](int64_t batch, int64_t in, int64_t out, Extent image, const Window& window) {
    all.push_back({batch, in, out, 1, image, window});
  };
  const Window same{{3, 3}, {1, 1}, {1, 1}};
  add(16, 5, 7, {8, 8}, same);
  add(33, 3, 4, {5, 9}, same);
  add(1, 2, 3, {32, 32}, same);
  add(17, 70, 5, {7, 7}, same);  // several tiles of planes
  add(2, 3, 2, {1, 1}, same);    // a single pixel
  add(2, 3, 2, {2, 3}, same);
  add(18, 4, 6, {9, 6}, {{1, 1}});
  add(5, 3, 4, {9, 8}, {{3, 3}, {2, 2}, {1, 1}});
  add(5, 3, 4, {8, 7}, {{3, 3}, {2, 2}, {1, 1}});
  add(3, 4, 3, {8, 8}, {{1, 1}, {2, 2}});            // only one phase is read
  add(3, 2, 3, {11, 10}, {{5, 5}, {1, 1}, {2, 2}});  // a border wider than a line
  add(3, 2, 3, {11, 10}, {{5, 5}});                  // outputs narrower than inputs
  add(2, 3, 2, {13, 12}, {{7, 7}, {2, 2}, {3, 3}});
  add(2, 3, 2, {12, 13}, {{3, 3}, {1, 1}, {2, 2}, {2, 2}});
  add(2, 3, 2, {12, 13}, {{3, 2}, {3, 2}, {0, 1}, {1, 2}});
  add(2, 2, 2, {4, 4}, {{2, 2}, {1, 1}, {3, 3}});  // outputs wider than inputs
  add(2, 2, 2, {4, 4}, {{1, 1}, {1, 1}, {2, 1}});
  add(2, 2, 3, {5, 20}, {{1, 7}, {1, 1}, {0, 3}});
  add(2, 2, 3, {6, 6}, {{6, 6}});  // one output
  // Several parts of an image's rows, of their columns, and of both.
  add(2, 2, 2, {70, 12}, same);
  add(2, 2, 2, {1, 700}, {{1, 3}, {1, 1}, {0, 1}});
  add(2, 2, 2, {2, 1401}, {{1, 3}, {1, 2}, {0, 1}});
  add(2, 2, 2, {10, 682}, {{3, 3}, {2, 2}, {1, 1}});
  add(3, 70, 6, {10, 9}, {{3, 3}, {2, 2}, {1, 1}});   // tiles of two rows, a column overlapping
  add(3, 6, 70, {12, 14}, {{3, 3}, {2, 2}, {1, 1}});  // of the gradient
  add(3, 40, 230, {5, 8}, {{1, 1}});                  // the next plane asked for
  return all;
}

std::string name_of(const ConvolutionShape& s) {
  return s.input_shape().to_string() + " * " + s.weight_shape().to_string() + " stride " +
         s.window.stride.to_string() + " padding " + s.window.padding.to_string() + " dilation " +
         s.window.dilation.to_string();
}

TEST(SparseConvolution, ItsProductsAreThoseOfTheDefinition) {
  for (const ConvolutionShape& s : shapes()) {
    for (const double density : {0.1, 0.6}) {
      SCOPED_TRACE(name_of(s));
      const Positions p = positions_of(s, density);
      const SparseConvolution c = make_sparse_convolution(s, p.view());
      const auto nnz = static_cast<int64_t>(p.column.size());
      const std::vector<float> values = test::normal_values("values", nnz);
      const std::vector<float> bias = test::normal_values("bias", s.out_channels);
      const Tensor x = test::normal_tensor("x", s.input_shape());
      const Tensor dy = test::normal_tensor("dy", s.output_shape());
      std::vector<double> y, dx(static_cast<size_t>(x.numel())), dw(values.size());
      const int64_t pixels = s.output().height * s.output().width;
      for (int64_t i = 0; i < dy.numel(); ++i) {
        y.push_back(bias[static_cast<size_t>(i / pixels % s.out_channels)]);
      }
      const float *x_at = x.data(), *dy_at = dy.data();
      for_each_product(s, p, [&](int64_t element, int64_t in, int64_t out) {
        const double value = values[static_cast<size_t>(element)];
        y[static_cast<size_t>(out)] += value * x_at[in];
        dx[static_cast<size_t>(in)] += value * dy_at[out];
        dw[static_cast<size_t>(element)] += static_cast<double>(dy_at[out]) * x_at[in];
      });
      const Tensor x_slabs = x.to(Order::ImageSlabs), dy_slabs = dy.to(Order::ImageSlabs);
      EXPECT_LT(
          test::largest_error(sparse_convolution(c, values, x_slabs, bias.data()).to_vector(), y),
          3e-5);
      EXPECT_LT(test::largest_error(
                    sparse_convolution_input_gradient(c, values, dy_slabs).to_vector(), dx),
                3e-5);
      std::vector<float> gradient(values.size(), 1.0f);
      sparse_convolution_weight_gradient(c, dy_slabs, x_slabs, Accumulate::No, gradient);
      EXPECT_LT(test::largest_error(gradient, dw), 2e-5);
      sparse_convolution_weight_gradient(c, dy_slabs, x_slabs, Accumulate::Yes, gradient);
      for (double& value : dw) value *= 2.0;
      EXPECT_LT(test::largest_error(gradient, dw), 2e-5);
    }
  }
}

// Whole slabs and rest, copies, strides.
TEST(SparseConvolution, ItsWeightGradientLeavesTheSumsOfDy) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(name_of(s));
    const Positions p = positions_of(s, 0.3);
    const SparseConvolution c = make_sparse_convolution(s, p.view());
    const Tensor x = test::normal_tensor("x", s.input_shape()).to(Order::ImageSlabs),
                 dy = test::normal_tensor("dy", s.output_shape()).to(Order::ImageSlabs);
    std::vector<float> gradient(p.column.size()), with_sums(gradient);
    std::vector<float> sums(static_cast<size_t>(s.out_channels), NAN);
    sparse_convolution_weight_gradient(c, dy, x, Accumulate::No, gradient);
    sparse_convolution_weight_gradient(c, dy, x, Accumulate::No, with_sums, sums.data());
    EXPECT_EQ(with_sums, gradient);
    std::vector<double> expected(sums.size());
    const std::vector<float> slopes = dy.to_vector();
    const size_t pixels = slopes.size() / static_cast<size_t>(s.batch * s.out_channels);
    for (size_t i = 0; i < slopes.size(); ++i) expected[i / pixels % sums.size()] += slopes[i];
    EXPECT_LT(test::largest_error(sums, expected), 1e-5);
  }
}

// What follows a product reads the borders of what it gives.
TEST(SparseConvolution, ItsResultsHaveZeroBorders) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(name_of(s));
    const Positions p = positions_of(s, 0.5);
    const SparseConvolution c = make_sparse_convolution(s, p.view());
    const std::vector<float> values =
        test::normal_values("values", static_cast<int64_t>(p.column.size()));
    const std::vector<float> bias(static_cast<size_t>(s.out_channels), 1.0f);
    const auto check = [](const Tensor& tensor) {
      Tensor cleared = tensor.clone();
      cleared.clear_padding();
      const ImageSlabs images(tensor.shape());
      int64_t wrong = 0;
      for (size_t i = 0; i < tensor.storage().size(); ++i) {
        const bool is_example = static_cast<int64_t>(i) % kImageSlabWidth <
                                images.batch - static_cast<int64_t>(i) / kImageSlabWidth /
                                                   images.slab_lines() * kImageSlabWidth;
        wrong += is_example && tensor.storage()[i] != cleared.storage()[i];
      }
      EXPECT_EQ(wrong, 0);
    };
    check(sparse_convolution(
        c, values, test::normal_tensor("x", s.input_shape()).to(Order::ImageSlabs), bias.data()));
    const Tensor dy = test::normal_tensor("dy", s.output_shape()).to(Order::ImageSlabs);
    check(sparse_convolution_input_gradient(c, values, dy));
  }
}

// Whole slabs and rest, parts of rows and columns, strides, phases; a mean far from zero.
TEST(SparseConvolution, StatisticsOnTheWayAreThoseOfTheOutput) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(name_of(s));
    const Positions p = positions_of(s, 0.4);
    const SparseConvolution c = make_sparse_convolution(s, p.view());
    const std::vector<float> values =
        test::normal_values("values", static_cast<int64_t>(p.column.size()));
    const std::vector<float> bias(static_cast<size_t>(s.out_channels), 30.0f);
    const Tensor x = test::normal_tensor("x", s.input_shape()).to(Order::ImageSlabs);
    ChannelStatistics found;
    const Tensor y = sparse_convolution(c, values, x, bias.data(), &found);
    EXPECT_EQ(y.to_vector(), sparse_convolution(c, values, x, bias.data()).to_vector());
    const ChannelStatistics expected = channel_statistics(y.to(Order::RowMajor));
    ASSERT_EQ(found.mean.size(), expected.mean.size());
    for (size_t i = 0; i < found.mean.size(); ++i) {
      EXPECT_NEAR(found.mean[i], expected.mean[i], 1e-5);
      EXPECT_NEAR(found.variance[i], expected.variance[i], 1e-5 * (1.0 + expected.variance[i]));
    }
  }
}

TEST(SparseConvolution, ItsBitsDoNotDependOnTheNumberOfThreads) {
  const ConvolutionShape s{70, 8, 9, 1, {40, 40}, {{3, 3}, {1, 1}, {1, 1}}};
  const Positions p = positions_of(s, 0.3);
  const SparseConvolution c = make_sparse_convolution(s, p.view());
  const auto nnz = static_cast<int64_t>(p.column.size());
  const std::vector<float> values = test::normal_values("values", nnz);
  Tensor x = test::normal_tensor("x", s.input_shape()).to(Order::ImageSlabs);
  Tensor dy = test::normal_tensor("dy", s.output_shape()).to(Order::ImageSlabs);
  const int threads = num_threads();
  std::vector<std::vector<float>> results[2];
  ChannelStatistics statistics[2];
  for (const int count : {1, 2}) {
    set_num_threads(count);
    std::vector<float> gradient(values.size());
    sparse_convolution_weight_gradient(c, dy, x, Accumulate::No, gradient);
    results[count - 1] = {
        sparse_convolution(c, values, x, nullptr, &statistics[count - 1]).to_vector(),
        sparse_convolution_input_gradient(c, values, dy).to_vector(), gradient};
  }
  set_num_threads(threads);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(statistics[0].mean, statistics[1].mean);
  EXPECT_EQ(statistics[0].variance, statistics[1].variance);
}

}  // namespace
}  // namespace lacuna::sparse_convolution_test
