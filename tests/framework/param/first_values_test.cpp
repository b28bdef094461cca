// The first values of a parameter: drawn by seed, name and pattern.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "framework/param/parameters.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "throws.h"

namespace lacuna::first_values_test {
namespace {

TEST(ParameterTest, ValuesDependOnSeedAndNameAlone) {
  const auto draw = [](uint64_t seed, const char* name) {
    const ParameterPtr p = named(Shape{4, 5}, Initializer::uniform(1.0), name);
    p->initialize(seed);
    return p->values().to_vector();
  };
  EXPECT_EQ(draw(1, "a"), draw(1, "a"));
  EXPECT_NE(draw(1, "a"), draw(2, "a"));
  EXPECT_NE(draw(1, "a"), draw(1, "b"));
}

TEST(ParameterTest, MaskedValuesEqualTheDenseOnesInsideTheMask) {
  const ParameterPtr dense = named(Shape{4, 5}, Initializer::normal(1.0), "w");
  const ParameterPtr masked = named(Shape{4, 5}, Initializer::normal(1.0), "w");
  masked->set_pattern(keeping(Shape{4, 5}, {0, 7, 19}));
  for (int64_t i = 0; i < 20; ++i) {
    const bool kept = i == 0 || i == 7 || i == 19;
    EXPECT_EQ(masked->values().data()[i], kept ? dense->values().data()[i] : 0.0f);
  }
}

// A weight [4, 8] whose spread follows the nonzeros: rows of 8, 2, 1 and no nonzeros.
constexpr int64_t kColumns = 8;
const std::vector<int64_t> kUneven = {0, 1, 2, 3, 4, 5, 6, 7, 9, 14, 18};

TEST(ParameterTest, ValuesDrawnManyAtATimeAreThoseDrawnOneByOne) {
  const CounterRng rng(5, "w");
  using Kind = Initializer::Kind;
  for (const Kind kind : {Kind::Constant, Kind::Uniform, Kind::Normal, Kind::TruncatedNormal}) {
    const Initializer initializer{.kind = kind, .center = 0.25, .spread = 0.5};
    std::vector<float> values((1 << 14) + 131);  // more than a task, and no multiple of a block
    initializer.fill(rng, values);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], initializer.value(rng, static_cast<int64_t>(i))) << i;
    }
    const Positions positions = Positions::of(Shape{4, 8}, kUneven);
    std::vector<float> few(kUneven.size());
    initializer.fill(rng, positions, few);
    for (size_t i = 0; i < few.size(); ++i) {
      EXPECT_EQ(few[i], initializer.value(rng, kUneven[i])) << kUneven[i];
    }
  }
}

Initializer following(Initializer::Fan fan) {
  Initializer initializer = Initializer::uniform(1.0);
  initializer.fan = fan;
  return initializer;
}

ParameterPtr first_drawn_for(const Initializer& initializer, const Layout& layout) {
  const ParameterPtr p = named(Shape{4, kColumns}, initializer, "w");
  p->set_pattern(Pattern::make(layout, p->shape(), Positions::of(p->shape(), kUneven)));
  return p;
}

TEST(ParameterTest, FirstValuesGrowAsTheInputsOfAnOutputBecomeFewer) {
  const std::vector<float> fixed =
      named(Shape{4, kColumns}, Initializer::uniform(1.0), "w")->to_dense().to_vector();
  const std::vector<double> growth = {1.0, 2.0, std::sqrt(8.0)};  // √(8/8), √(8/2), √(8/1)
  std::vector<float> expected(fixed.size());
  for (const int64_t i : kUneven) {
    const auto at = static_cast<size_t>(i);
    expected[at] = static_cast<float>(growth[at / kColumns] * fixed[at]);
  }
  const ParameterPtr masked = first_drawn_for(following(Initializer::Fan::In), masked_layout());
  const std::vector<float> drawn = masked->to_dense().to_vector();
  for (size_t i = 0; i < drawn.size(); ++i) {
    // The product is rounded once here, and twice in `expected`.
    EXPECT_FLOAT_EQ(drawn[i], expected[i]) << i;
  }
  EXPECT_EQ(first_drawn_for(following(Initializer::Fan::In), csr_layout())->to_dense().to_vector(),
            drawn);
}

TEST(ParameterTest, FirstValuesGrowAsInputsAndOutputsBecomeFewer) {
  const std::vector<float> fixed =
      named(Shape{4, kColumns}, Initializer::uniform(1.0), "w")->to_dense().to_vector();
  const ParameterPtr p = first_drawn_for(following(Initializer::Fan::InAndOut), csr_layout());
  const std::vector<float> drawn = p->to_dense().to_vector();
  const auto growth = [](double left) { return std::sqrt((4 + kColumns) / left); };
  EXPECT_FLOAT_EQ(drawn[0], static_cast<float>(growth(8 + 1) * fixed[0]));
  EXPECT_FLOAT_EQ(drawn[1], static_cast<float>(growth(8 + 2) * fixed[1]));
  EXPECT_FLOAT_EQ(drawn[14], static_cast<float>(growth(2 + 2) * fixed[14]));
  EXPECT_FLOAT_EQ(drawn[18], static_cast<float>(growth(1 + 2) * fixed[18]));
  EXPECT_EQ(first_drawn_for(following(Initializer::Fan::InAndOut), masked_layout())
                ->to_dense()
                .to_vector(),
            drawn);
}

TEST(ParameterTest, FirstValuesOfAWholePatternAreTheDenseOnes) {
  const Shape shape{4, kColumns};
  for (const auto fan : {Initializer::Fan::In, Initializer::Fan::InAndOut}) {
    const ParameterPtr dense = named(shape, following(fan), "w");
    for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
      const ParameterPtr whole = named(shape, following(fan), "w");
      whole->set_pattern(Pattern::make(*layout, shape, Positions::all(shape)));
      EXPECT_EQ(whole->to_dense().to_vector(), dense->to_dense().to_vector()) << layout->name();
      EXPECT_EQ(dense->to_dense().to_vector(),
                named(shape, Initializer::uniform(1.0), "w")->to_dense().to_vector());
    }
  }
}

TEST(ParameterTest, LookingAtFirstValuesChangesNothing) {
  const Initializer initializer = following(Initializer::Fan::In);
  const PatternPtr pattern = keeping(Shape{4, kColumns}, kUneven);
  const ParameterPtr unseen = named(Shape{4, kColumns}, initializer, "w");
  const ParameterPtr seen = named(Shape{4, kColumns}, initializer, "w");
  seen->values();
  unseen->set_pattern(pattern);
  seen->set_pattern(pattern);
  EXPECT_EQ(seen->values().to_vector(), unseen->values().to_vector());
}

TEST(ParameterTest, ValuesThatAreNotTheFirstOnesKeepTheirSizeInAnyPattern) {
  const Shape shape{4, kColumns};
  const auto expect_kept = [&](const char* what, const auto& give) {
    const ParameterPtr p = named(shape, following(Initializer::Fan::In), "w");
    give(*p);
    const std::vector<float> before = p->to_dense().to_vector();
    for (const auto& positions : {kUneven, std::vector<int64_t>{9, 18}}) {
      p->set_pattern(keeping(shape, positions));
      for (const int64_t i : positions) {
        EXPECT_EQ(p->values().data()[i], before[static_cast<size_t>(i)]) << what;
      }
    }
  };
  expect_kept("assigned", [&](Parameter& p) { p.assign(counted(shape)); });
  expect_kept("changed", [](Parameter& p) { p.mutable_values().mutable_data()[3] = 7.0f; });
  expect_kept("replaced", [&](Parameter& p) { p.replace(Pattern::dense(shape), counted(shape)); });
  // As a gradual algorithm's, which begins with a mask that holds everything.
  expect_kept("drawn for another pattern", [&](Parameter& p) {
    p.set_pattern(Pattern::make(masked_layout(), shape, Positions::all(shape)));
  });
  expect_kept("dense again", [&](Parameter& p) {
    p.set_pattern(keeping(shape, kUneven));
    p.set_pattern(Pattern::dense(shape));
  });
}

TEST(ParameterTest, InitializeDrawsFirstValuesAnew) {
  const ParameterPtr p = named(Shape{4, kColumns}, following(Initializer::Fan::In), "w");
  p->assign(counted(p->shape()));
  p->initialize(0);
  p->set_pattern(keeping(p->shape(), kUneven));
  EXPECT_EQ(
      p->values().to_vector(),
      first_drawn_for(following(Initializer::Fan::In), masked_layout())->values().to_vector());
}

TEST(ParameterTest, FirstValuesOfAConvolutionCountChannelsAndTaps) {
  const Shape shape{2, 2, 1, 3};
  const std::vector<int64_t> kept = {0, 2, 3, 7};  // output 0: channel 0 twice, channel 1; output 1
  const std::vector<float> fixed =
      named(shape, Initializer::uniform(1.0), "w")->to_dense().to_vector();
  const auto drawn = [&](Initializer::Fan fan, const Layout& layout) {
    const ParameterPtr p = named(shape, following(fan), "w");
    p->set_pattern(Pattern::make(layout, shape, Positions::of(shape, kept)));
    return p->to_dense().to_vector();
  };
  for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
    const std::vector<float> in = drawn(Initializer::Fan::In, *layout);
    EXPECT_FLOAT_EQ(in[3], static_cast<float>(std::sqrt(6.0 / 3.0) * fixed[3]));
    EXPECT_FLOAT_EQ(in[7], static_cast<float>(std::sqrt(6.0 / 1.0) * fixed[7]));
    const std::vector<float> both = drawn(Initializer::Fan::InAndOut, *layout);
    const auto growth = [](double left) { return std::sqrt((6.0 + 6.0) / left); };
    EXPECT_FLOAT_EQ(both[0], static_cast<float>(growth(3 + 3) * fixed[0]));
    EXPECT_FLOAT_EQ(both[2], static_cast<float>(growth(3 + 3) * fixed[2]));
    EXPECT_FLOAT_EQ(both[3], static_cast<float>(growth(3 + 1) * fixed[3]));
    EXPECT_FLOAT_EQ(both[7], static_cast<float>(growth(1 + 3) * fixed[7]));
    EXPECT_EQ(both[1], 0.0f);
  }
}

}  // namespace
}  // namespace lacuna::first_values_test
