// Counts of units as multiples: blocks of an order by hand, and what is left of models.
#include "lacuna/framework/shrink/unit_rounding.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "framework/shrink/small_models.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::unit_rounding_test {
namespace {

using testing::ElementsAre;

struct Rounded {
  explicit Rounded(const std::string& yaml, const Shape& example = {3, 8, 8})
      : model(make(yaml, example)),
        units(*model, example),
        rows(module_rows(*model, example)),
        scores(static_cast<size_t>(units.count)) {
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<double>(i);
  }
  static std::unique_ptr<Sequential> make(const std::string& yaml, const Shape& example) {
    register_builtins();
    return build_model(model_layers(parse_yaml(yaml, "model")), example);
  }
  std::vector<std::vector<int32_t>> blocks(const std::vector<int64_t>& multiples,
                                           double keep_at_least = 0.1) const {
    return removal_blocks(units, rows, scores,
                          {.shares = ShrinkShares::Global, .keep_at_least = keep_at_least},
                          multiples);
  }
  RoundedChoice within(double target, const Rounding& rounding, double least_use = 0.9) const {
    const double all = flops(without_first(units, {}, 0));
    const BudgetSearch search{.target = target,
                              .part = [&](const KeptUnits& kept) { return flops(kept) / all; }};
    return choose_rounded(
        units, rounding, [&](const std::vector<int64_t>& multiples) { return blocks(multiples); },
        search, least_use);
  }
  double flops(const KeptUnits& kept) const { return cost_of(*model, rows, units, kept).flops; }
  // Indices that stay, of each weight's first dimension.
  std::map<std::string, size_t> rows_left(const KeptUnits& kept) const {
    std::map<std::string, size_t> left;
    for (const UnitGraph::Slice& slice : units.slices) {
      if (slice.is_input || slice.parameter->shape().rank() < 2) continue;
      left[slice.parameter->name()] = kept_indices(slice.units, kept).size();
    }
    return left;
  }

  std::unique_ptr<Sequential> model;
  ModelUnits units;
  std::vector<ModuleRow> rows;
  std::vector<double> scores;
};

std::vector<size_t> sizes(const std::vector<std::vector<int32_t>>& blocks) {
  std::vector<size_t> all;
  for (const auto& block : blocks) all.push_back(block.size());
  return all;
}

constexpr const char* kChain =
    "[{type: conv2d, name: a, out_channels: 40, kernel: 3, padding: 1}, relu,\n"
    " {type: conv2d, name: b, out_channels: 12, kernel: 3, padding: 1}, relu, flatten,\n"
    " {type: linear, name: c, out_features: 30}, relu, {type: linear, name: d, out_features: 3}]";

TEST(UnitRounding, AutoChoosesMultiplesByTheKindOfAGroup) {
  const Rounded chain(kChain);
  const auto of_groups = [&](const Rounding& rounding) {
    const std::vector<int64_t> multiples = multiples_of_units(chain.units, rounding);
    std::vector<int64_t> first;
    for (const UnitGroup& group : chain.units.groups) {
      first.push_back(multiples[static_cast<size_t>(group.units.front())]);
    }
    return first;
  };
  EXPECT_THAT(of_groups(Rounding::automatic()), ElementsAre(16, 8, 8, 8));
  EXPECT_THAT(of_groups({.multiple = 4, .is_auto = true}), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(of_groups({.multiple = 32}), ElementsAre(32, 32, 32, 32));
}

TEST(UnitRounding, BlocksLeaveMultiples) {
  const Rounded chain(kChain);
  const auto blocks = chain.blocks(multiples_of_units(chain.units, Rounding::automatic()));
  // Of 40 channels 32 and 16 stay, of 12 channels 8, of 30 units 24, 16, 8. The middle unit of a
  // block says when it goes.
  EXPECT_THAT(sizes(blocks), ElementsAre(8, 16, 4, 6, 8, 8));
  EXPECT_THAT(blocks[0], ElementsAre(3, 4, 5, 6, 7, 8, 9, 10));  // after three inputs
}

TEST(UnitRounding, MultiplesOfOneAreTheOrderItself) {
  for (const shrink_tests::SmallModel& small : shrink_tests::small_models()) {
    if (small.vocabulary != 0) continue;
    const Rounded model(small.yaml, small.example);
    const std::vector<int64_t> single(static_cast<size_t>(model.units.count), 1);
    const auto order =
        removal_order(model.units, model.rows, model.scores, {.shares = ShrinkShares::Global});
    const auto blocks = model.blocks(single);
    ASSERT_EQ(blocks.size(), order.size()) << small.name;
    for (size_t i = 0; i < order.size(); ++i) EXPECT_THAT(blocks[i], ElementsAre(order[i]));
  }
}

// Stages of 16, 32 and 64 channels, where a wider stage pads the one before it with zeros.
TEST(UnitRounding, AllWidthsOfAResidualStreamAreMultiples) {
  const Rounded resnet("{type: cifar_resnet, depth: 8, num_labels: 10}", {3, 16, 16});
  for (const double target : {0.7, 0.5, 0.3, 0.15}) {
    const RoundedChoice choice = resnet.within(target, Rounding::automatic());
    ASSERT_TRUE(choice.kept) << target;
    EXPECT_EQ(choice.rounding.multiple, target >= 0.5 ? 16 : 8) << target;
    const double part =
        resnet.flops(*choice.kept) / resnet.flops(without_first(resnet.units, {}, 0));
    EXPECT_LE(part, target);
    EXPECT_GE(part, 0.9 * target);
    const auto multiple = static_cast<size_t>(choice.rounding.multiple);
    for (const auto& [weight, left] : resnet.rows_left(*choice.kept)) {
      if (left == 10) continue;  // the classes
      EXPECT_EQ(left % (left > 16 ? multiple : 8), 0u) << weight << ": " << left;
    }
  }
}

TEST(UnitRounding, LayersKeepWhatTheyMustKeep) {
  const Rounded chain(kChain);
  const auto blocks = chain.blocks(multiples_of_units(chain.units, {.multiple = 8}), 0.7);
  // 28 of 40, 9 of 12 and 21 of 30 at least: 32, 12 and 24.
  EXPECT_THAT(sizes(blocks), ElementsAre(8, 6));
}

TEST(UnitRounding, HeadsAreCountedOneByOne) {
  const Rounded bert(
      "{type: bert, vocab_size: 23, max_position_embeddings: 12, hidden_size: 16,\n"
      " num_hidden_layers: 1, num_attention_heads: 4, intermediate_size: 24, num_labels: 3}",
      {12});
  const auto blocks = bert.blocks(multiples_of_units(bert.units, Rounding::automatic()));
  EXPECT_THAT(sizes(blocks),
              ElementsAre(1, 1, 1, 8, 8, 8));  // three heads, feed-forward units, pooler
}

// 12 units cannot be halved in multiples of 8 or 4.
TEST(UnitRounding, AutoTakesSmallerMultiplesForABudget) {
  const Rounded mlp(
      "[{type: linear, name: a, out_features: 12}, relu, {type: linear, name: b, out_features: 3}]",
      {7});
  const RoundedChoice half = mlp.within(0.5, Rounding::automatic());
  EXPECT_EQ(half.rounding.multiple, 2);
  EXPECT_EQ(mlp.rows_left(*half.kept).at("a.weight"), 6u);
  const RoundedChoice two_thirds = mlp.within(0.67, Rounding::automatic());
  EXPECT_EQ(two_thirds.rounding.multiple, 16);
  EXPECT_EQ(mlp.rows_left(*two_thirds.kept).at("a.weight"), 8u);
  EXPECT_EQ(mlp.rows_left(*mlp.within(0.5, {.multiple = 4}).kept).at("a.weight"), 4u);
  EXPECT_FALSE(mlp.within(0.5, {.multiple = 12}).kept);
}

// Six positions of each channel reach fc after the flattening.
TEST(UnitRounding, PatternsFitWhatIsLeft) {
  const Rounded chain(
      "[{type: conv2d, name: a, out_channels: 20, kernel: 1}, relu, flatten,\n"
      " {type: linear, name: fc, out_features: 30}, relu, {type: linear, name: b, out_features: "
      "3}]",
      {1, 2, 3});
  const auto of_groups = [&](const PatternShape& pattern, const std::string& weight,
                             int64_t multiple) {
    Rounding rounding{.multiple = multiple, .is_auto = true};
    rounding.of_patterns = multiples_of_patterns(chain.units, [&](const Parameter& parameter) {
      return parameter.name() == weight ? pattern : PatternShape();
    });
    const std::vector<int64_t> multiples = multiples_of_units(chain.units, rounding);
    std::vector<int64_t> first;
    for (const UnitGroup& group : chain.units.groups) {
      first.push_back(multiples[static_cast<size_t>(group.units.front())]);
    }
    return first;
  };
  EXPECT_THAT(of_groups(PatternShape::nm(2, 4), "fc.weight", 1), ElementsAre(2, 1, 1));
  EXPECT_THAT(of_groups(PatternShape::nm(2, 4), "b.weight", 2), ElementsAre(2, 4, 2));
  EXPECT_THAT(of_groups(PatternShape::block(6, 6), "fc.weight", 16), ElementsAre(16, 6, 8));
  EXPECT_THAT(of_groups(PatternShape::block(10, 5), "fc.weight", 16), ElementsAre(15, 10, 8));
  EXPECT_TRUE(
      multiples_of_patterns(chain.units, [](const Parameter&) { return PatternShape(); }).empty());
}

// A block that is too large for what is missing: others are put back.
TEST(UnitRounding, BlocksThatStillFitArePutBack) {
  const Rounded chain(kChain);
  const std::vector<std::vector<int32_t>> blocks{{3}, {4, 5}, {6, 7, 8, 9}};
  const auto count = [](const KeptUnits& kept) {
    return static_cast<double>(std::count(kept.begin(), kept.end(), 0));
  };
  // At least five of the units of these blocks go: the last one, and one more.
  const auto kept = keep_within(chain.units, blocks,
                                {.target = 1.0 - 5.0 / 100.0, .part = [&](const KeptUnits& units) {
                                   return 1.0 - count(units) / 100.0;
                                 }});
  ASSERT_TRUE(kept);
  EXPECT_EQ(count(*kept), 5.0);
  EXPECT_EQ((*kept)[3], 0);
  EXPECT_EQ((*kept)[4], 1);
}

// Widths that are no multiples: the block that makes them one stays out.
TEST(UnitRounding, CountsStayMultiplesWhereBlocksArePutBack) {
  const Rounded mlp(
      "[{type: linear, name: a, out_features: 44}, relu, {type: linear, name: b, out_features: "
      "100}, relu, {type: linear, name: c, out_features: 3}]",
      {30});
  for (const double target : {0.8, 0.7, 0.6, 0.5, 0.4, 0.3}) {
    for (const int64_t multiple : {8, 16, 32}) {
      const RoundedChoice choice = mlp.within(target, {.multiple = multiple});
      if (!choice.kept) continue;
      for (const auto& [weight, left] : mlp.rows_left(*choice.kept)) {
        const size_t width = weight == "a.weight" ? 44 : weight == "b.weight" ? 100 : left;
        EXPECT_TRUE(left == width || left % static_cast<size_t>(multiple) == 0)
            << weight << ": " << left << " at " << target << " in multiples of " << multiple;
      }
    }
  }
}

// As with a budget of time, for which a choice need not come close.
TEST(UnitRounding, MultiplesAreHalvedUntilTheBudgetIsMet) {
  const Rounded mlp(
      "[{type: linear, name: a, out_features: 24}, relu, {type: linear, name: b, out_features: 3}]",
      {30});
  const double target = 0.2;  // 16 of 24 neurons may go in multiples of 8
  EXPECT_FALSE(mlp.within(target, {.multiple = 8}).kept);
  const RoundedChoice choice = mlp.within(target, {.multiple = 8, .is_auto = true}, 0.0);
  ASSERT_TRUE(choice.kept);
  EXPECT_EQ(choice.rounding.multiple, 4);
  EXPECT_EQ(mlp.rows_left(*choice.kept).at("a.weight"), 4u);
}

TEST(UnitRounding, IsAutoOrAPositiveInteger) {
  EXPECT_TRUE(Rounding::from_config(parse_yaml("auto", "c.yaml")).is_auto);
  EXPECT_EQ(Rounding::from_config(parse_yaml("12", "c.yaml")).multiple, 12);
  for (const char* wrong : {"0", "-8", "some", "[8]", "2.5"}) {
    EXPECT_THROW(Rounding::from_config(parse_yaml(wrong, "c.yaml")), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace lacuna::unit_rounding_test
