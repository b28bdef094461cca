#include "lacuna/framework/kernels/nm/nm_activations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/csr/feature_stream.hpp"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "random_values.h"

namespace lacuna::nm_activations_test {
namespace {

using Slabs = Array<float>;  // aligned, as tensors are

struct Problem {
  Problem(int64_t batch_, int64_t in_, int64_t out_, int n, int m)
      : batch(batch_),
        in(in_),
        out(out_),
        form{.rows = batch, .columns = in, .pattern = PatternShape::nm(n, m)} {
    Tensor drawn = random_tensor(Shape{batch, in}, "x");
    for (float& value : drawn.mutable_storage()) value = std::max(value, 0.0f);
    values = Tensor::zeros(Shape{form.stored()});
    nm_select_values(form, drawn.storage(), matrix, values.mutable_storage());
    x = Tensor::empty(Shape{batch, in});
    nm_to_dense(matrix, values.data(), x.mutable_data());
    weight = random_tensor(Shape{out, in}, "weight");
    dy = random_tensor(Shape{batch, out}, "dy");
    bias = random_tensor(Shape{out}, "bias");
  }

  Slabs weight_slabs() const {
    Slabs slabs(static_cast<size_t>(output_slabs_size(out, in)), NAN);
    weight_to_output_slabs(weight.data(), out, in, slabs.data());
    return slabs;
  }
  Slabs dy_slabs() const {
    Slabs slabs(static_cast<size_t>(output_slabs_size(out, batch)), NAN);
    rows_to_output_slabs(dy.data(), batch, out, slabs.data());
    return slabs;
  }
  std::vector<float> product(bool fresh, const float* added) const {
    Slabs slabs = weight_slabs();
    if (fresh) std::ranges::fill(slabs, NAN);
    std::vector<float> y(static_cast<size_t>(batch * out), NAN);
    nm_activation_product(matrix, values.data(),
                          {.slabs = slabs.data(), .rows = fresh ? weight.data() : nullptr}, out,
                          added, y.data());
    EXPECT_EQ(slabs, weight_slabs());
    return y;
  }
  std::vector<float> input_gradient() const {
    const Slabs of_weight = weight_slabs(), of_dy = dy_slabs();
    Tensor slots = Tensor::full(Shape{form.stored()}, NAN);
    nm_activation_input_gradient(matrix, of_dy.data(), of_weight.data(), out, slots.mutable_data());
    Tensor dense = Tensor::empty(Shape{batch, in});
    nm_to_dense(matrix, slots.data(), dense.mutable_data());
    return dense.to_vector();
  }
  std::vector<float> weight_gradient(float start) const {
    const Slabs of_dy = dy_slabs();
    std::vector<float> gradient(static_cast<size_t>(out * in), start == 0.0f ? NAN : start);
    nm_activation_weight_gradient(x.data(), batch, in, of_dy.data(), out,
                                  start != 0.0f ? Accumulate::Yes : Accumulate::No,
                                  gradient.data());
    return gradient;
  }

  int64_t batch, in, out;
  NmMatrixForm form;
  NmMatrix matrix;
  Tensor values, x, weight, dy, bias;
};

// Σ over l < terms of a[l · a_stride] · b[l · b_stride].
double dot(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t terms) {
  double sum = 0.0;
  for (int64_t l = 0; l < terms; ++l) sum += double{a[l * a_stride]} * double{b[l * b_stride]};
  return sum;
}

void expect_products(const Problem& p) {
  SCOPED_TRACE(std::to_string(p.batch) + " examples, " + std::to_string(p.in) + " to " +
               std::to_string(p.out) + ", " + std::to_string(p.form.n()) + ":" +
               std::to_string(p.form.m()));
  constexpr double kTolerance = 2e-4;  // rounding of sums of some hundred products below 1
  const std::vector<float> y = p.product(true, p.bias.data()), plain = p.product(false, nullptr);
  for (int64_t i = 0; i < p.batch; ++i) {
    for (int64_t o = 0; o < p.out; ++o) {
      const double sum = dot(p.x.data() + i * p.in, 1, p.weight.data() + o * p.in, 1, p.in);
      const auto at = static_cast<size_t>(i * p.out + o);
      ASSERT_NEAR(plain[at], sum, kTolerance);
      ASSERT_NEAR(y[at], sum + double{p.bias.data()[o]}, kTolerance);
    }
  }
  std::vector<double> dx(static_cast<size_t>(p.batch * p.in));
  nm_for_each(p.matrix, [&](int64_t, int64_t i, int64_t c) {
    dx[static_cast<size_t>(i * p.in + c)] =
        dot(p.dy.data() + i * p.out, 1, p.weight.data() + c, p.in, p.out);
  });
  const std::vector<float> found = p.input_gradient();
  for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(found[i], dx[i], kTolerance) << i;
  const std::vector<float> dw = p.weight_gradient(0.0f), added = p.weight_gradient(2.5f);
  for (int64_t o = 0; o < p.out; ++o) {
    for (int64_t c = 0; c < p.in; ++c) {
      const double sum = dot(p.dy.data() + o, p.out, p.x.data() + c, p.in, p.batch);
      const auto at = static_cast<size_t>(o * p.in + c);
      ASSERT_NEAR(dw[at], sum, kTolerance);
      ASSERT_NEAR(added[at], sum + 2.5, kTolerance);
    }
  }
}

TEST(NmActivations, ProductsAreThoseOfTheMatrix) {
  for (const int64_t batch : {1, 2, 17, 64, 65, 131, 300}) {
    for (const int64_t out : {1, 10, 63, 64, 65, 130}) {
      expect_products({batch, 12, out, 2, 4});
      expect_products({batch, 148, out, 2, 4});
    }
  }
  for (const auto& [n, m] : {std::pair{1, 4}, {1, 2}, {2, 8}, {4, 8}, {3, 8}, {8, 16}, {1, 1}}) {
    expect_products({67, 16 * m, 70, n, m});
  }
  expect_products({40, 1024, 96, 2, 4});
  expect_products({300, 2048, 65, 2, 4});  // several blocks of examples
  expect_products({2100, 1024, 3, 2, 4});  // and several streams of them
}

TEST(NmActivations, BitsDoNotDependOnTheThreads) {
  const int before = num_threads();
  for (const int64_t batch : {67, 200}) {
    const Problem p(batch, 1024, 200, 2, 4);
    set_num_threads(1);
    const auto y = p.product(true, p.bias.data()), dx = p.input_gradient();
    const auto dw = p.weight_gradient(0.0f), added = p.weight_gradient(1.0f);
    internal::take_most_threads();
    for (const int threads : {2, 5}) {
      set_num_threads(threads);
      EXPECT_EQ(p.product(true, p.bias.data()), y);
      EXPECT_EQ(p.input_gradient(), dx);
      EXPECT_EQ(p.weight_gradient(0.0f), dw);
      EXPECT_EQ(p.weight_gradient(1.0f), added);
      EXPECT_GT(internal::take_most_threads(), 1);
    }
  }
  set_num_threads(before);
}

TEST(NmActivations, NoExamplesGiveNoWeightGradient) {
  const Problem p(0, 8, 3, 2, 4);
  EXPECT_EQ(p.weight_gradient(0.0f), std::vector<float>(24));
  EXPECT_EQ(p.weight_gradient(1.0f), std::vector<float>(24, 1.0f));
}

// Each feature's nonzeros, by example.
std::vector<std::vector<float>> rows_of(const FeatureStream& s) {
  std::vector<std::vector<float>> rows(static_cast<size_t>(s.stream.rows),
                                       std::vector<float>(static_cast<size_t>(s.stream.columns)));
  csr_for_each_segment(s.stream, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
    for (int64_t k = 0; k < length; ++k) {
      const int64_t column = first + s.stream.offsets[static_cast<size_t>(value + k)];
      rows[static_cast<size_t>(row)][static_cast<size_t>(column)] =
          s.values[static_cast<size_t>(value + k)];
    }
  });
  return rows;
}

TEST(FeatureStream, HoldsEveryNonzeroOnce) {
  for (const int64_t batch : {1, 63, 64, 65, 129, 1000}) {
    for (const int64_t features : {1, 5, 700}) {
      for (const float least : {-1.0f, 0.0f, 0.9f, 2.0f}) {  // full, half, tenth, nothing
        Tensor x = random_tensor(Shape{batch, features}, "x");
        int64_t nnz = 0;
        for (float& value : x.mutable_storage()) {
          if (value < least) value = 0.0f;
          nnz += value != 0.0f ? 1 : 0;
        }
        const Tensor slabs = x.to(Order::BatchSlabs);
        const FeatureStream s = feature_stream(slabs.data(Order::BatchSlabs), batch, features);
        ASSERT_EQ(s.stream.nnz, nnz);
        ASSERT_EQ(s.stream.blocks.size(), 1u);
        const auto rows = rows_of(s);
        for (int64_t i = 0; i < batch; ++i) {
          for (int64_t f = 0; f < features; ++f) {
            ASSERT_EQ(rows[static_cast<size_t>(f)][static_cast<size_t>(i)],
                      x.data()[i * features + f]);
          }
        }
      }
    }
  }
}

TEST(FeatureStream, KeepsNaNAndInfinityAndDropsEitherZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x =
      Tensor::from(Shape{5, 1}, std::vector<float>{NAN, -0.0f, kInfinity, 0.0f, -kInfinity});
  const Tensor slabs = x.to(Order::BatchSlabs);
  const FeatureStream s = feature_stream(slabs.data(Order::BatchSlabs), 5, 1);
  ASSERT_EQ(s.stream.nnz, 3);
  EXPECT_TRUE(std::isnan(s.values[0]));
  EXPECT_EQ(s.values[1], kInfinity);
  EXPECT_EQ(s.values[2], -kInfinity);
  EXPECT_EQ(std::vector(s.stream.offsets.begin(), s.stream.offsets.begin() + 3),
            (std::vector<uint16_t>{0, 2, 4}));
}

}  // namespace
}  // namespace lacuna::nm_activations_test
