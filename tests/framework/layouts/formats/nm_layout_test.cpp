#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/layouts/pattern.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::nm_layout_test {
namespace {

// Two of each four along rows and columns, but for what `thin` leaves out: then groups have fewer.
PatternPtr pattern_of(const PatternShape& format, const Shape& shape, bool thin) {
  BitMask mask = BitMask::zeros(shape.numel());
  const CounterRng rng(5, "mask");
  for (int64_t r = 0; r < shape[0]; ++r) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      const int64_t shifted = format.is_transposable() ? c + r : c + r / 3;
      if (shifted % format.m() < format.n() && shape[1] > 0) mask.set(r * shape[1] + c);
    }
  }
  for (int64_t i = 0; thin && i < shape.numel(); ++i) {
    if (rng.uniform(static_cast<uint64_t>(i)) < 0.4f) mask.reset(i);
  }
  return Pattern::make(layout_for(format), shape, Positions::of(shape, mask));
}

struct Case {
  PatternShape format;
  Shape shape;
  bool thin;
  int64_t batch;
};

class NmLayoutTest : public testing::TestWithParam<Case> {
 protected:
  NmLayoutTest()
      : pattern_(pattern_of(GetParam().format, GetParam().shape, GetParam().thin)),
        masked_(Pattern::masked(pattern_->shape(), pattern_->mask())),
        values_(Tensor::empty(Shape{pattern_->stored_size()})) {
    const Tensor drawn = random_tensor(pattern_->shape(), "w");
    pattern_->layout().from_dense(*pattern_, drawn.storage(), values_.mutable_storage());
    dense_ = pattern_->layout().to_dense(*pattern_, values_.storage());
  }
  WeightView weight() const { return {.pattern = *pattern_, .values = values_.storage()}; }
  WeightView reference() const { return {.pattern = *masked_, .values = dense_.storage()}; }

  static void expect_equal(const Tensor& found, const Tensor& expected) {
    ASSERT_EQ(found.shape(), expected.shape());
    const std::vector<float> a = found.to_vector(), b = expected.to_vector();
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5) << "element " << i;
  }

  PatternPtr pattern_, masked_;
  Tensor values_, dense_;
};

// Every product as layout masked computes it.
TEST_P(NmLayoutTest, ProductsAreThoseOfMasked) {
  const Layout& layout = pattern_->layout();
  const int64_t out = pattern_->shape()[0], in = pattern_->shape()[1], batch = GetParam().batch;
  const Tensor x = random_tensor(Shape{batch, in}, "x"),
               dy = random_tensor(Shape{batch, out}, "dy"), bias = random_tensor(Shape{out}, "b");
  expect_equal(layout.forward(weight(), x, bias), masked_layout().forward(reference(), x, bias));
  expect_equal(layout.forward(weight(), x.to(Order::BatchSlabs), Tensor()),
               masked_layout().forward(reference(), x, Tensor()));
  expect_equal(layout.input_gradient(weight(), dy),
               masked_layout().input_gradient(reference(), dy));
  Tensor stored = Tensor::full(values_.shape(), 9.0f), expected = Tensor::zeros(pattern_->shape());
  for (const Accumulate accumulate : {Accumulate::No, Accumulate::Yes}) {
    layout.weight_gradient(*pattern_, dy, x, accumulate, stored.mutable_storage());
    masked_layout().weight_gradient(*masked_, dy, x, accumulate, expected.mutable_storage());
    expect_equal(layout.to_dense(*pattern_, stored.storage()), expected);
  }
  // Nothing is left in the slots that no element has.
  Tensor pruned = stored.clone();
  layout.prune(*pattern_, pruned.mutable_storage());
  EXPECT_EQ(pruned.to_vector(), stored.to_vector());
}

TEST_P(NmLayoutTest, TheCopyOfTheValuesFollowsTheirVersion) {
  const Tensor dy = random_tensor(Shape{GetParam().batch, pattern_->shape()[0]}, "dy");
  DerivedValues derived;
  WeightView view = weight();
  view.derived = &derived;
  view.version = 1;
  const Layout& layout = pattern_->layout();
  const Tensor before = layout.input_gradient(view, dy);
  for (float& value : values_.mutable_storage()) value *= -2.0f;
  expect_equal(layout.input_gradient(view, dy), before);
  view.version = 2;
  const Tensor after = layout.input_gradient(view, dy);
  const std::vector<float> a = after.to_vector(), b = before.to_vector();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], -2.0f * b[i]);
}

// One example and several may go different ways, with copies in different orders.
TEST_P(NmLayoutTest, OneCopyServesBatchesOfEverySize) {
  DerivedValues derived;
  WeightView view = weight();
  view.derived = &derived;
  view.version = 1;
  for (const int64_t batch : {1, 7, 1, 64, 2}) {
    const Tensor dy = random_tensor(Shape{batch, pattern_->shape()[0]}, "dy");
    expect_equal(pattern_->layout().input_gradient(view, dy),
                 masked_->layout().input_gradient(reference(), dy));
  }
}

TEST_P(NmLayoutTest, PositionsAndArraysGoBothWays) {
  const Layout& layout = pattern_->layout();
  EXPECT_EQ(pattern_->positions(), masked_->positions());
  EXPECT_GE(pattern_->stored_size(), pattern_->nnz());
  std::vector<float> elements(static_cast<size_t>(pattern_->nnz()));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i + 1);
  std::vector<float> stored(static_cast<size_t>(pattern_->stored_size()), 7.0f);
  layout.expand(*pattern_, elements, stored);
  double sum = 0.0;
  for (const float value : stored) sum += double{value};
  const auto count = static_cast<double>(elements.size());
  EXPECT_EQ(sum, count * (count + 1) / 2);  // the other slots are zero
  std::vector<float> back(elements.size());
  layout.compact(*pattern_, stored, back);
  EXPECT_EQ(back, elements);
}

const PatternShape kTransposable = PatternShape::transposable_2_4();
INSTANTIATE_TEST_SUITE_P(Formats, NmLayoutTest,
                         testing::Values(Case{PatternShape::nm(2, 4), {7, 12}, false, 5},
                                         Case{PatternShape::nm(2, 4), {13, 260}, true, 70},
                                         Case{PatternShape::nm(2, 4), {5, 8}, false, 1},
                                         Case{PatternShape::nm(1, 4), {6, 20}, false, 3},
                                         Case{PatternShape::nm(4, 8), {5, 136}, true, 33},
                                         Case{PatternShape::nm(2, 8), {9, 24}, false, 2},
                                         Case{PatternShape::nm(3, 4), {4, 16}, false, 17},
                                         Case{PatternShape::nm(1, 16), {11, 160}, false, 64},
                                         Case{PatternShape::nm(5, 10), {3, 30}, true, 9},
                                         Case{PatternShape::nm(2, 4), {96, 132}, false, 70},
                                         Case{kTransposable, {132, 96}, false, 70},
                                         Case{kTransposable, {4, 4}, false, 1},
                                         Case{kTransposable, {12, 140}, false, 65},
                                         Case{kTransposable, {140, 12}, true, 6},
                                         Case{kTransposable, {8, 8}, true, 1},
                                         Case{PatternShape::nm(2, 4), {3, 0}, false, 3},
                                         Case{kTransposable, {0, 0}, false, 2}));

TEST(NmLayoutNames, LeadToOneObjectEach) {
  const Layout& plain = layout_for(PatternShape::nm(2, 4));
  EXPECT_EQ(plain.name(), "nm 2:4");
  EXPECT_EQ(layout_for(kTransposable).name(), "nm 2:4 transposable");
  EXPECT_EQ(&layout_for(PatternShape::nm(2, 4)), &plain);
  EXPECT_EQ(find_layout("nm 2:4"), &plain);
  EXPECT_EQ(find_layout("nm 2:4 transposable"), &layout_for(kTransposable));
  EXPECT_EQ(find_layout("nm 4:16"), &layout_for(PatternShape::nm(4, 16)));
  EXPECT_EQ(find_layout("nm 2:17"), nullptr);
}

PatternPtr make(const PatternShape& format, const Shape& shape, const std::vector<int64_t>& flat) {
  return Pattern::make(layout_for(format), shape, Positions::of(shape, flat));
}

TEST(NmLayoutErrors, NameWhatDoesNotFit) {
  expect_throws<ShapeError>(
      [] {
        make(PatternShape::nm(2, 4), {3, 10}, {});
      },
      "[3, 10]: 10 columns are not divisible by 4");
  expect_throws<ShapeError>(
      [] {
        make(kTransposable, {6, 8}, {});
      },
      "6 rows are not divisible by 4");
  expect_throws<ShapeError>(
      [] {
        make(PatternShape::nm(2, 4), {2, 8}, {0, 1, 12, 13, 15});
      },
      "row 1 has 3 nonzeros in group 1 (columns 4 to 7); at most 2 are allowed");
  expect_throws<ShapeError>(
      [] {
        make(PatternShape::nm(1, 4), {1, 8}, {4, 5, 6, 7});
      },
      "row 0 has 4 nonzeros in group 1");
  expect_throws<ShapeError>(
      [] {
        make(kTransposable, {8, 4}, {17, 21, 25});
      },
      "column 1 has more than 2 nonzeros in rows 4 to 7");
  make(PatternShape::nm(2, 4), {2, 8}, {2, 3, 4, 5});  // neighbours of two groups
}

}  // namespace
}  // namespace lacuna::nm_layout_test
