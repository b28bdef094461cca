#include "lacuna/framework/param/parameter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "framework/param/parameters.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "throws.h"

namespace lacuna::parameter_test {
namespace {

TEST(ParameterTest, SetPattern_KeepsSurvivorsAndStartsGrownAtZero) {
  const ParameterPtr p = named(Shape{2, 3}, Initializer::constant(0.0), "w");
  p->set_pattern(keeping(Shape{2, 3}, {0, 1, 2}));
  p->assign(counted(Shape{2, 3}));
  p->slot("momentum") = counted(Shape{2, 3});
  p->prune();
  p->accumulate(counted(Shape{2, 3}));
  p->set_pattern(keeping(Shape{2, 3}, {1, 2, 5}));
  const std::vector<float> survivors{0, 2, 3, 0, 0, 0};
  EXPECT_EQ(p->values().to_vector(), survivors);
  EXPECT_EQ(p->gradient().to_vector(), survivors);
  EXPECT_EQ(p->slots().at("momentum").values.to_vector(), survivors);
}

TEST(ParameterTest, SetPattern_GrowsFromNothing) {
  const Shape shape{4, 4};
  const Positions none(shape), one_tile = Positions::of(shape, std::vector<int64_t>{0, 1, 4, 5});
  for (const Layout* layout : {&csr_layout(), &layout_for(PatternShape::block(2, 2))}) {
    const ParameterPtr p = named(shape, Initializer::constant(1.0), "w");
    p->set_pattern(Pattern::make(*layout, shape, none));
    p->slot("momentum");
    EXPECT_EQ(p->values().numel(), 0) << layout->name();
    p->set_pattern(Pattern::make(*layout, shape, one_tile));
    EXPECT_EQ(p->to_dense().to_vector(), std::vector<float>(16)) << layout->name();
    EXPECT_EQ(p->slot("momentum").to_vector(), std::vector<float>(4)) << layout->name();
    p->set_pattern(Pattern::make(*layout, shape, none));
    EXPECT_EQ(p->values().numel(), 0) << layout->name();
  }
}

// An N:M pattern for one step derives a dense copy of the values, one for many a transposed copy.
TEST(ParameterTest, SetPattern_OfAnotherLifetimeKeepsArraysAndDerivesAnew) {
  const ParameterPtr p = named(Shape{4, 8}, Initializer::normal(1.0), "w");
  const Layout& layout = layout_for(PatternShape::nm(2, 4));
  std::vector<int64_t> flat;
  for (int64_t i = 0; i < 32; i += 2) flat.push_back(i);
  p->set_pattern(
      Pattern::make(layout, p->shape(), Positions::of(p->shape(), flat), PatternLifetime::OneStep));
  p->slot("momentum").mutable_storage()[3] = 5.0f;
  const std::vector<float> values = p->to_dense().to_vector();
  const Tensor dy = Tensor::full(Shape{3, 4}, 1.0f);
  const auto input_gradient = [&] {
    const WeightReference weight = p->as_weight(nullptr);
    return layout.input_gradient(weight.view(), dy).to_vector();
  };
  const std::vector<float> expected = input_gradient();
  EXPECT_EQ(p->pattern()->lifetime(), PatternLifetime::OneStep);
  p->set_pattern(p->pattern()->with_lifetime(PatternLifetime::ManySteps));
  EXPECT_EQ(p->pattern()->lifetime(), PatternLifetime::ManySteps);
  EXPECT_EQ(p->to_dense().to_vector(), values);
  EXPECT_EQ(p->slot("momentum").to_vector()[3], 5.0f);
  const std::vector<float> found = input_gradient();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5f) << i;
}

TEST(ParameterTest, SetPattern_LeavesDenseSlotsWhole) {
  const ParameterPtr p = named(Shape{2, 2}, Initializer::constant(1.0), "w");
  p->dense_slot("shadow").values = counted(Shape{2, 2});
  p->set_pattern(keeping(Shape{2, 2}, {3}));
  p->prune();
  EXPECT_EQ(p->slots().at("shadow").values.to_vector(), (std::vector<float>{1, 2, 3, 4}));
}

TEST(ParameterTest, Prune_DoesItsWorkAfterEveryChange) {
  const ParameterPtr p = named(Shape{1, 2}, Initializer::constant(1.0), "w");
  p->set_pattern(keeping(Shape{1, 2}, {1}));
  p->accumulate(counted(Shape{1, 2}));
  p->slot("momentum");
  const auto expect_pruned_again = [&](const char* what, std::span<float> array) {
    EXPECT_FALSE(p->is_pruned()) << what;
    array[0] = 7.0f;
    p->prune();
    EXPECT_TRUE(p->is_pruned()) << what;
    EXPECT_EQ(array[0], 0.0f) << what;
  };
  p->prune();
  expect_pruned_again("values", p->mutable_values().mutable_storage());
  expect_pruned_again("gradient", p->mutable_gradient().mutable_storage());
  expect_pruned_again("slot", p->slot("momentum").mutable_storage());
  expect_pruned_again("slots", p->slots().at("momentum").values.mutable_storage());
  p->set_pattern(keeping(Shape{1, 2}, {0}));
  EXPECT_FALSE(p->is_pruned());
}

TEST(ParameterTest, Replace_SharesTheArraysAndMovesAlignedSlotsAlone) {
  const Shape shape{2, 2};
  const ParameterPtr p = named(shape, Initializer::constant(1.0), "w");
  p->dense_slot("shadow").values = counted(shape);
  p->slot("m") = counted(shape);
  p->accumulate(counted(shape));
  const Tensor values = Tensor::from(Shape{1}, std::vector<float>{7});
  const PatternPtr one =
      Pattern::make(csr_layout(), shape, Positions::of(shape, std::vector<int64_t>{2}));
  p->replace(one, values);
  EXPECT_FALSE(p->has_gradient());
  EXPECT_TRUE(p->values().shares_storage_with(values));
  EXPECT_EQ(p->slot("m").to_vector(), (std::vector<float>{3}));
  EXPECT_EQ(p->slots().at("shadow").values.to_vector(), (std::vector<float>{1, 2, 3, 4}));
  p->slots().erase("m");
  const Tensor& shadow = p->slots().at("shadow").values;
  p->replace(Pattern::dense(shape), shadow, counted(shape));
  EXPECT_EQ(p->gradient().to_vector(), (std::vector<float>{1, 2, 3, 4}));
  p->mutable_values().mutable_data()[0] = 9.0f;
  EXPECT_EQ(shadow.data()[0], 9.0f);
  expect_throws<ShapeError>(
      [&] { p->replace(one, counted(shape)); },
      "'w' of shape [2, 2] was given a pattern of shape [2, 2] with arrays of "
      "shape [2, 2], expected [1]");
  expect_throws<ShapeError>([&] { p->replace(Pattern::dense(Shape{4}), counted(Shape{4})); },
                            "a pattern of shape [4]");
  expect_throws<ShapeError>(
      [&] { p->replace(Pattern::dense(shape), counted(shape), Tensor::zeros(Shape{1})); }, "'w'");
}

TEST(ParameterTest, SetPattern_RefusesAnotherShape) {
  const ParameterPtr p = named(Shape{2, 2}, Initializer::constant(1.0), "fc.weight");
  expect_throws<ShapeError>([&] { p->set_pattern(Pattern::dense(Shape{4})); },
                            "'fc.weight' has shape [2, 2], but the pattern given has shape [4]");
  expect_throws<ShapeError>([&] { p->assign(Tensor::zeros(Shape{4})); },
                            "'fc.weight' has shape [2, 2], but the values given have shape [4]");
}

TEST(ParameterTest, GradientIsSelectedAndAddsUpUntilZeroed) {
  const ParameterPtr p = named(Shape{1, 3}, Initializer::constant(1.0), "w");
  p->set_pattern(keeping(Shape{1, 3}, {0, 2}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_throws<StateError>([&] { p->gradient(); }, "'w' has no gradient");
  p->accumulate(Tensor::from(Shape{1, 3}, std::vector<float>{1, nan, 3}));
  p->accumulate(Tensor::from(Shape{1, 3}, std::vector<float>{1, nan, 3}));
  EXPECT_EQ(p->gradient().to_vector(), (std::vector<float>{2, 0, 6}));
  p->zero_gradient();
  EXPECT_FALSE(p->has_gradient());
  p->accumulate_product(Tensor::full(Shape{2, 1}, 1.0f), Tensor::full(Shape{2, 3}, 2.0f));
  EXPECT_EQ(p->gradient().to_vector(), (std::vector<float>{4, 0, 4}));
  expect_throws<ShapeError>([&] { p->accumulate(Tensor::zeros(Shape{3})); },
                            "has shape [3], the parameter [1, 3]");
}

class Recorder final : public GradientTap {
 public:
  void observe(const Tensor& gradient) override { seen.push_back(gradient.to_vector()); }
  void observe_product(const Tensor&, const Tensor&) override { ++products; }
  void reset() override { seen.clear(); }
  std::vector<std::vector<float>> seen;
  int products = 0;
};

TEST(ParameterTest, ATapSeesTheDenseGradient) {
  const ParameterPtr p = named(Shape{1, 2}, Initializer::constant(1.0), "w");
  p->set_pattern(keeping(Shape{1, 2}, {0}));
  const auto recorder = std::make_shared<Recorder>();
  p->set_gradient_tap(recorder);
  p->accumulate_product(Tensor::full(Shape{1, 1}, 2.0f), Tensor::full(Shape{1, 2}, 3.0f));
  ASSERT_EQ(recorder->seen.size(), 1u);
  EXPECT_EQ(recorder->seen[0], (std::vector<float>{6, 6}));
  EXPECT_EQ(p->gradient().to_vector(), (std::vector<float>{6, 0}));
  p->zero_gradient();
  EXPECT_TRUE(recorder->seen.empty());
}

TEST(ParameterTest, ATapThatTakesGradientsLeavesNone) {
  struct Taker final : GradientTap {
    Taker() : GradientTap(GradientRoute::TapOnly) {}
    void observe(const Tensor&) override { ++seen; }
    void observe_product(const Tensor&, const Tensor&) override { ++seen; }
    void reset() override {}
    int seen = 0;
  };
  const ParameterPtr p = named(Shape{1, 2}, Initializer::constant(1.0), "w");
  for (const bool compressed : {false, true}) {
    if (compressed) {
      p->set_pattern(Pattern::make(csr_layout(), Shape{1, 2},
                                   Positions::of(Shape{1, 2}, std::vector<int64_t>{1})));
    }
    const auto taker = std::make_shared<Taker>();
    p->set_gradient_tap(taker);
    p->accumulate_product(Tensor::full(Shape{1, 1}, 2.0f), Tensor::full(Shape{1, 2}, 3.0f));
    p->accumulate(counted(Shape{1, 2}));
    EXPECT_EQ(taker->seen, 2);
    EXPECT_FALSE(p->has_gradient());
  }
}

TEST(ParameterTest, ObserverOfACompressedParameterSeesTheFactors) {
  const ParameterPtr p = named(Shape{1, 2}, Initializer::constant(1.0), "w");
  p->set_pattern(Pattern::make(csr_layout(), Shape{1, 2},
                               Positions::of(Shape{1, 2}, std::vector<int64_t>{1})));
  const auto recorder = std::make_shared<Recorder>();
  p->set_gradient_tap(recorder);
  p->accumulate_product(Tensor::full(Shape{1, 1}, 2.0f), Tensor::full(Shape{1, 2}, 3.0f));
  EXPECT_EQ(recorder->products, 1);
  EXPECT_TRUE(recorder->seen.empty());
  EXPECT_EQ(p->gradient().to_vector(), (std::vector<float>{6}));
}

TEST(ParameterTest, CompressedArraysMoveBetweenPatternsAndLayouts) {
  const Shape shape{2, 3};
  const ParameterPtr p = named(shape, Initializer::uniform(1.0), "w");
  const std::vector<float> drawn = p->to_dense().to_vector();
  const auto csr = [&](std::vector<int64_t> flat) {
    return Pattern::make(csr_layout(), shape, Positions::of(shape, flat));
  };
  p->initialize(0);
  p->set_pattern(csr({1, 2, 5}));
  EXPECT_EQ(p->to_dense().to_vector(), (std::vector<float>{0, drawn[1], drawn[2], 0, 0, drawn[5]}));
  p->slot("m") = p->expanded(Tensor::from(Shape{3}, std::vector<float>{1, 2, 3}));
  p->set_pattern(csr({0, 2, 4, 5}));
  EXPECT_EQ(p->compacted(p->slot("m")).to_vector(), (std::vector<float>{0, 2, 0, 3}));
  EXPECT_EQ(p->to_dense().to_vector(), (std::vector<float>{0, 0, drawn[2], 0, 0, drawn[5]}));
  p->set_pattern(keeping(shape, {2, 3}));
  EXPECT_EQ(p->slot("m").to_vector(), (std::vector<float>{0, 0, 2, 0, 0, 0}));
  p->set_pattern(csr({2}));
  EXPECT_EQ(p->slot("m").to_vector(), (std::vector<float>{2}));
  p->set_pattern(Pattern::dense(shape));
  EXPECT_EQ(p->to_dense().to_vector(), (std::vector<float>{0, 0, drawn[2], 0, 0, 0}));
  expect_throws<ShapeError>([&] { p->expanded(Tensor::zeros(Shape{5})); }, "has 6 nonzeros");
}

TEST(ParameterTest, ReportsItsMaskAndBytes) {
  const ParameterPtr p = named(Shape{2, 2}, Initializer::constant(1.0), "w");
  EXPECT_EQ(p->mask().values, (std::vector<uint8_t>{1, 1, 1, 1}));
  p->set_pattern(keeping(Shape{2, 2}, {2}));
  EXPECT_EQ(p->mask().values, (std::vector<uint8_t>{0, 0, 1, 0}));
  EXPECT_EQ(p->bytes(), 8);  // values are drawn when they are needed
  p->values();
  EXPECT_EQ(p->bytes(), 4 * 4 + 8);  // values and one mask word
}

// Of [2, 2, 1, 3]: the inputs of an output are all channels at all taps, the outputs of an input
// are all outputs at all taps of the channel.
}  // namespace
}  // namespace lacuna::parameter_test
