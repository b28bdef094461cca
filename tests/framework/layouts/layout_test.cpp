#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lacuna/framework/layouts/pattern.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::layout_test {
namespace {

PatternPtr checkered(const Shape& shape, const Layout& layout = masked_layout()) {
  BitMask mask = BitMask::zeros(shape.numel());
  for (int64_t i = 0; i < shape.numel(); i += 2) mask.set(i);
  return Pattern::make(layout, shape, Positions::of(shape, mask));
}

PatternPtr pattern_in(const std::string& layout, const Shape& shape) {
  if (layout == "dense") return Pattern::dense(shape);
  return checkered(shape, layout == "csr" ? csr_layout() : masked_layout());
}

/// W of a pattern with its stored values, as a dense matrix of doubles.
double element(const Tensor& dense, int64_t row, int64_t column) {
  return dense.data()[row * dense.shape()[1] + column];
}

class ProductsTest : public testing::TestWithParam<const char*> {
 protected:
  ProductsTest()
      : pattern_(pattern_in(GetParam(), kShape)),
        values_(Tensor::empty(Shape{pattern_->stored_size()})) {
    pattern_->layout().from_dense(*pattern_, random_tensor(kShape, "w").storage(),
                                  values_.mutable_storage());
    dense_ = pattern_->layout().to_dense(*pattern_, values_.storage());
  }

  WeightView weight() const { return {.pattern = *pattern_, .values = values_.storage()}; }

  static inline const Shape kShape{5, 7};  // out, in
  PatternPtr pattern_;
  Tensor values_, dense_;
};

TEST_P(ProductsTest, Forward) {
  const Tensor x = random_tensor(Shape{2, 3, 7}, "x"), bias = random_tensor(Shape{5}, "b");
  const Tensor y = pattern_->layout().forward(weight(), x, bias).to(Order::RowMajor);
  ASSERT_EQ(y.shape(), (Shape{2, 3, 5}));
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t o = 0; o < 5; ++o) {
      double sum = bias.data()[o];
      for (int64_t j = 0; j < 7; ++j) sum += x.data()[i * 7 + j] * element(dense_, o, j);
      ASSERT_NEAR(y.data()[i * 5 + o], sum, 1e-6);
    }
  }
}

TEST_P(ProductsTest, ForwardTakesSlabs) {
  const Tensor x = random_tensor(Shape{70, 7}, "x");
  const Layout& layout = pattern_->layout();
  const Tensor a = layout.forward(weight(), x, Tensor());
  const Tensor b = layout.forward(weight(), x.to(Order::BatchSlabs), Tensor());
  EXPECT_EQ(a.to_vector(), b.to_vector());
}

TEST_P(ProductsTest, InputGradient) {
  const Tensor dy = random_tensor(Shape{6, 5}, "dy");
  const Tensor dx = pattern_->layout().input_gradient(weight(), dy).to(Order::RowMajor);
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 7; ++j) {
      double sum = 0;
      for (int64_t o = 0; o < 5; ++o) sum += dy.data()[i * 5 + o] * element(dense_, o, j);
      ASSERT_NEAR(dx.data()[i * 7 + j], sum, 1e-6);
    }
  }
}

TEST_P(ProductsTest, WeightGradientIsZeroOutsideThePatternAndAccumulates) {
  const Tensor dy = random_tensor(Shape{6, 5}, "dy"), x = random_tensor(Shape{6, 7}, "x");
  Tensor stored = Tensor::full(values_.shape(), 9.0f);
  const Layout& layout = pattern_->layout();
  layout.weight_gradient(*pattern_, dy, x, Accumulate::No, stored.mutable_storage());
  layout.weight_gradient(*pattern_, dy, x, Accumulate::Yes, stored.mutable_storage());
  const Tensor gradient = layout.to_dense(*pattern_, stored.storage());
  for (int64_t o = 0; o < 5; ++o) {
    for (int64_t j = 0; j < 7; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < 6; ++i) sum += dy.data()[i * 5 + o] * x.data()[i * 7 + j];
      const bool exists = pattern_->is_dense() || pattern_->mask().test(o * 7 + j);
      ASSERT_NEAR(gradient.data()[o * 7 + j], exists ? 2 * sum : 0.0, 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ProductsTest, testing::Values("dense", "masked", "csr"));

// Wide layers run a few examples side by side: as each alone.
TEST(CsrLayout, AFewExamplesOfAWideLayerAreComputedAsEachAlone) {
  constexpr int64_t kOut = (int64_t{1} << 20) + 3, kIn = 5, kBatch = 3;
  const Shape shape{kOut, kIn};
  std::vector<int64_t> flat;
  for (int64_t i = 0; i < shape.numel(); i += 1 + i % 7 * 97) flat.push_back(i);
  const PatternPtr pattern = Pattern::make(csr_layout(), shape, Positions::of(shape, flat));
  const Tensor values = random_tensor(Shape{pattern->nnz()}, "values"),
               bias = random_tensor(Shape{kOut}, "bias");
  const Tensor x = random_tensor(Shape{kBatch, kIn}, "x"),
               dy = random_tensor(Shape{kBatch, kOut}, "dy");
  const WeightView weight{.pattern = *pattern, .values = values.storage()};
  const Layout& csr = csr_layout();
  ASSERT_EQ(csr.order(kBatch, kOut), Order::RowMajor);
  const Tensor y = csr.forward(weight, x, bias), dx = csr.input_gradient(weight, dy);
  Tensor together = Tensor::empty(values.shape()), alone = Tensor::zeros(values.shape());
  csr.weight_gradient(*pattern, dy, x, Accumulate::No, together.mutable_storage());
  for (int64_t e = 0; e < kBatch; ++e) {
    const auto row = [e](const Tensor& t) {
      const int64_t width = t.shape().features();
      return Tensor::from(Shape{1, width}, t.storage().subspan(static_cast<size_t>(e * width),
                                                               static_cast<size_t>(width)));
    };
    const Tensor y1 = csr.forward(weight, row(x), bias), dx1 = csr.input_gradient(weight, row(dy));
    csr.weight_gradient(*pattern, row(dy), row(x), Accumulate::Yes, alone.mutable_storage());
    for (int64_t i = 0; i < kOut; ++i) ASSERT_NEAR(y.data()[e * kOut + i], y1.data()[i], 1e-6);
    // Sums of some ten thousand products, in other orders.
    for (int64_t i = 0; i < kIn; ++i) ASSERT_NEAR(dx.data()[e * kIn + i], dx1.data()[i], 1e-3);
  }
  for (int64_t i = 0; i < pattern->nnz(); ++i) {
    ASSERT_NEAR(together.data()[i], alone.data()[i], 1e-6);
  }
}

TEST(MaskedLayout, NaNOutsideTheMaskDoesNotLeakIntoTheGradient) {
  const PatternPtr pattern = checkered(Shape{1, 2});  // position 1 is pruned
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor dy = Tensor::full(Shape{1, 1}, 1.0f);
  const Tensor x = Tensor::from(Shape{1, 2}, std::vector<float>{2.0f, nan});
  Tensor gradient = Tensor::zeros(Shape{1, 2});
  masked_layout().weight_gradient(*pattern, dy, x, Accumulate::No, gradient.mutable_storage());
  EXPECT_EQ(gradient.to_vector(), (std::vector<float>{2.0f, 0.0f}));
}

TEST(PatternTest, ItsIndexIsOfTheTypeThatItsLayoutMakes) {
  struct OfAnotherLayout final : PatternIndex {
    int64_t bytes() const override { return 0; }
  };
  const PatternPtr pattern = Pattern::make(csr_layout(), Shape{2, 3}, Positions(Shape{2, 3}));
  EXPECT_EQ(&pattern->index_as<PatternIndex>(), pattern->index());
  expect_throws<StateError>([&] { pattern->index_as<OfAnotherLayout>(); },
                            "[2, 3] in layout 'csr' has a different type than requested");
  expect_throws<StateError>(
      [] {
        Pattern::dense(Shape{2, 3})->index_as<OfAnotherLayout>();
      },
      "layout 'dense'");
}

TEST(PatternTest, CountsAndRefusals) {
  const PatternPtr pattern = checkered(Shape{3, 3});
  EXPECT_EQ(pattern->nnz(), 5);
  EXPECT_EQ(pattern->stored_size(), 9);
  EXPECT_EQ(pattern->layout().name(), "masked");
  EXPECT_EQ(Pattern::dense(Shape{3, 3})->nnz(), 9);
  EXPECT_EQ(Pattern::dense(Shape{0, 3})->density(), 1.0);
  expect_throws<StateError>([] { Pattern::dense(Shape{3})->mask(); }, "has no mask");
  expect_throws<ShapeError>(
      [] {
        Pattern::masked(Shape{2, 2}, BitMask::ones(3));
      },
      "[2, 2] needs 4 bits, found 3");
}

}  // namespace
}  // namespace lacuna::layout_test
