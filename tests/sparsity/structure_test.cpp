// Structured patterns: cells and units, and every algorithm within them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/masks/cell_rule.hpp"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/masks/units.hpp"
#include "test_model.h"
#include "throws.h"

namespace lacuna::structure_test {
namespace {

std::vector<float> random_scores(size_t count, const char* name) {
  const CounterRng rng(1, name);
  std::vector<float> scores(count);
  for (size_t i = 0; i < count; ++i) scores[i] = rng.uniform(i);
  return scores;
}

TEST(CellRule, ThereAreNinetyTransposableTiles) {
  EXPECT_EQ(transposable_tiles().size(), 90u);
  EXPECT_TRUE(std::ranges::is_sorted(transposable_tiles()));
}

TEST(CellRule, KeepsTheLargestAndTheLowerOfEquals) {
  const CellRule rule(PatternShape::nm(2, 4));
  EXPECT_EQ(rule.best(0, 0b1111, std::vector{0.1f, 0.4f, 0.3f, 0.2f}), 0b0110);
  EXPECT_EQ(rule.best(0, 0b1111, std::vector{0.5f, 0.5f, 0.5f, 0.5f}), 0b0011);
  EXPECT_EQ(rule.best(0b1000, 0b1111, std::vector{0.1f, 0.4f, 0.3f, 0.0f}), 0b1010);
  const float nan = std::nanf("");
  EXPECT_EQ(rule.best(0, 0b1111, std::vector{nan, 0.0f, nan, 0.1f}), 0b1010);
}

TEST(CellRule, TheTransposableTileIsTheBestOfAll) {
  const CellRule rule(PatternShape::transposable_2_4());
  const auto sum = [](CellBits bits, const std::vector<float>& scores) {
    double total = 0.0;
    for (size_t i = 0; i < 16; ++i) total += (bits >> i & 1) != 0 ? double{scores[i]} : 0.0;
    return total;
  };
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const auto scores = random_scores(16, ("tile " + std::to_string(trial)).c_str());
    double best = 0.0;  // of all tiles with two in each row and column
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto tile = static_cast<CellBits>(bits);
      if (rule.allows(tile) && std::popcount(tile) == 8) best = std::max(best, sum(tile, scores));
    }
    const CellBits chosen = rule.best(0, rule.all(), scores);
    EXPECT_TRUE(rule.allows(chosen));
    EXPECT_NEAR(sum(chosen, scores), best, 1e-6);
  }
}

// Masks that an earlier version chose may hold such tiles.
TEST(CellRule, ATileThatNoFullOneHoldsStaysOrGetsWhatFits) {
  const CellRule rule(PatternShape::transposable_2_4());
  constexpr CellBits kSix = 0b0000'0101'0110'0011, kSeven = 0b1000'0101'0110'0011;
  for (const CellBits tile : transposable_tiles()) ASSERT_NE(tile & kSix, kSix);
  for (const CellBits kept : {kSix, kSeven}) {
    EXPECT_EQ(rule.best(kept, rule.all(), std::vector<float>(16, 1.0f)), kept);
    EXPECT_EQ(rule.random(kept, CounterRng(0, "stuck"), 0), kSeven);
  }
}

// Coarse weights, so that many tiles have several best patterns.
TEST(CellRule, TransposableTilesAreThoseOfTheKernelTiesIncluded) {
  const Shape shape{32, 48};
  const CounterRng rng(3, "coarse");
  Tensor weights = Tensor::empty(shape), sizes = Tensor::empty(shape);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    const float size = static_cast<float>(rng.bits(static_cast<uint64_t>(i)) % 3) * 0.5f;
    sizes.mutable_data()[i] = size;
    weights.mutable_data()[i] = i % 2 == 0 ? size : -size;
  }
  const MaskSelector selector({}, PatternShape::transposable_2_4(), shape);
  EXPECT_EQ(selector.grow_maximum(rows_of(sizes), shape.numel() / 2, MaskSet(shape)),
            MaskSet(shape, transposable_select(32, 48, weights.storage())));
}

TEST(CellRule, RandomCellsAreFullHoldWhatIsKeptAndComeAboutEquallyOften) {
  const CellRule rule(PatternShape::nm(2, 4));
  const CounterRng rng(0, "random cells");
  std::vector<int> seen(16);
  for (uint64_t i = 0; i < 6000; ++i) {
    const CellBits drawn = rule.random(0, rng, i * CellRule::kWords);
    ASSERT_EQ(std::popcount(drawn), 2);
    ++seen[drawn];
    const CellBits grown = rule.random(0b0100, rng, i * CellRule::kWords);
    ASSERT_EQ(std::popcount(grown), 2);
    ASSERT_NE(grown & 0b0100, 0);
  }
  for (const int pair : {0b0011, 0b0101, 0b0110, 0b1001, 0b1010, 0b1100}) {
    EXPECT_NEAR(seen[static_cast<size_t>(pair)], 1000, 150);
  }
}

TEST(Units, GoThereAndBackAndRefuseParts) {
  const PatternShape blocks = PatternShape::block(2, 3);
  const Positions units(Shape{2, 2}, {0, 1, 3}, {1, 0, 1});
  const Positions elements = to_elements(units, blocks);
  EXPECT_EQ(elements.count(), 18);
  EXPECT_TRUE(elements.contains(3) && !elements.contains(2));
  EXPECT_EQ(to_units(elements, blocks), units);
  EXPECT_EQ(unit_scores(units, std::vector<float>(18, -2.0f), blocks),
            (std::vector<float>{12.0f, 12.0f, 12.0f}));
  const auto root = unit_scores(units, std::vector<float>(18, 2.0f),
                                PatternShape::block(2, 3, PatternShape::Norm::L2));
  EXPECT_FLOAT_EQ(root[0], std::sqrt(24.0f));
  for (size_t missing = 0; missing < 18; ++missing) {
    const Positions part = elements.filtered([&](size_t place) { return place != missing; });
    EXPECT_THROW(to_units(part, blocks), ShapeError) << missing;
  }
}

// Positions kept of each cell, each block.
void expect_structure(const PatternShape& s, const MaskSet& mask) {
  EXPECT_EQ(MaskSelector({}, s, mask.shape()).fit(mask), MaskSelector::Fit::Whole)
      << s.description();
}

const std::vector<PatternShape>& all_structures() {
  static const std::vector<PatternShape> all = {
      PatternShape::nm(2, 4),    PatternShape::nm(1, 4),    PatternShape::nm(3, 8),
      PatternShape::nm(2, 4, 8), PatternShape::nm(1, 4, 2), PatternShape::transposable_2_4(),
      PatternShape::block(4, 4), PatternShape::block(1, 4), PatternShape::block(8, 2)};
  return all;
}

TEST(MaskSelector, SelectsWithinEveryStructure) {
  const Shape shape{16, 24};
  const auto numel = static_cast<size_t>(shape.numel());
  for (const PatternShape& s : all_structures()) {
    const MaskSelector c({}, s, shape);
    const auto full = static_cast<int64_t>(s.full_density() * static_cast<double>(numel));
    const int64_t target = s.is_nm() ? full : 8 * s.unit_size();
    Tensor scores = Tensor::empty(shape);
    std::ranges::copy(random_scores(numel, "scores"), scores.mutable_data());
    const MaskSet drawn = c.grow_random(CounterRng(0, "draw"), target, MaskSet(shape));
    const MaskSet largest = c.grow_maximum(rows_of(scores), target, MaskSet(shape));
    const MaskSet thinned = c.prune_gradually(MaskSet::all(shape), scores.storage(), target);
    for (const MaskSet* p : {&drawn, &largest, &thinned}) {
      EXPECT_EQ(p->count(), target) << s.description();
      expect_structure(s, *p);
    }
    EXPECT_EQ(largest, thinned) << s.description();
    EXPECT_NE(drawn, largest);
    // Drop a third and grow back: what stayed stays.
    const int64_t kept = c.kept_after_drop(0.34f, target);
    EXPECT_EQ(kept % s.unit_size(), 0);
    const MaskSet stay =
        c.keep(drawn, random_scores(static_cast<size_t>(drawn.count()), "w"), kept);
    EXPECT_EQ(stay.count(), kept);
    const MaskSet grown = c.grow_maximum(rows_of(scores), target, stay);
    EXPECT_EQ(grown.count(), target);
    EXPECT_EQ(count_common(stay, grown), kept);
    expect_structure(s, grown);
  }
}

TEST(MaskSelector, GradualPruningConvertsTheCellsThatLoseLeast) {
  const PatternShape s = PatternShape::nm(2, 4);
  const MaskSelector c({}, s, Shape{1, 12});
  const std::vector<float> scores = {9, 9, 5, 5, 1, 2, 3, 4, 8, 8, 0, 1};
  const MaskSet one = c.prune_gradually(MaskSet::all(Shape{1, 12}), scores, 10);
  EXPECT_FALSE(one.test(10));
  EXPECT_FALSE(one.test(11));
  EXPECT_EQ(one.count(), 10);
  EXPECT_EQ(c.fit(one), MaskSelector::Fit::Partial);
  const MaskSet two = c.prune_gradually(MaskSet::all(Shape{1, 12}), scores, 9);
  EXPECT_EQ(two.count(), 8);
  EXPECT_FALSE(two.test(4) || two.test(5));
}

struct PatternCase {
  std::string pattern;
  PatternShape shape;
  double density;
};

// The pattern's own layout, or another.
std::string own_or(const std::string& layout, bool nm) {
  return layout != "own" ? layout : nm ? "nm" : "block";
}

class StructuredAlgorithms : public testing::TestWithParam<std::string> {};

TEST_P(StructuredAlgorithms, TrainWithinEveryPattern) {
  register_builtins();
  const std::vector<PatternCase> cases = {
      {"{type: nm, n: 2, m: 4}", PatternShape::nm(2, 4), 0.5},
      {"{type: nm, n: 1, m: 4, group: 4}", PatternShape::nm(1, 4, 4), 0.25},
      {"{type: nm, n: 2, m: 4, transposable: true}", PatternShape::transposable_2_4(), 0.5},
      {"{type: block, rows: 4, cols: 2}", PatternShape::block(4, 2), 0.25},
  };
  for (const PatternCase& chosen : cases) {
    std::map<std::string, std::vector<float>> masked;  // what it trains to in that layout
    for (const char* layout : {"masked", "csr", "own"}) {
      TestModel model;
      const bool nm = chosen.shape.is_nm();
      std::string entry = GetParam();
      const std::string sparsity = std::to_string(1.0 - chosen.density);
      if (const size_t at = entry.find("SPARSITY"); at != std::string::npos) {
        entry.replace(at, 8, nm ? "" : "sparsity: " + sparsity + ",");
      }
      if (const size_t at = entry.find("FINAL"); at != std::string::npos) {
        entry.replace(at, 5, sparsity);
      }
      const Config config = parse_yaml(
          "{" + entry + " pattern: " + chosen.pattern + ", layout: " + own_or(layout, nm) + "}",
          "c.yaml");
      const auto algorithm = configure(config, 0);
      config.require_all_read();
      model.apply(*algorithm);
      for (int step = 0; step < 7; ++step) model.step();
      for (const ParameterPtr& p : algorithm->parameters()) {
        const std::vector<float> values = whole(*p);
        if (layout == std::string("masked")) masked[p->name()] = values;
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(values[i], masked[p->name()][i], 2e-5f) << entry << " " << layout;
        }
        expect_structure(chosen.shape, MaskSet(p->pattern()));
        EXPECT_EQ(p->pattern()->nnz(),
                  static_cast<int64_t>(chosen.density * static_cast<double>(p->numel())))
            << entry << " " << chosen.pattern << " " << layout;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, StructuredAlgorithms,
    testing::Values(
        "algorithm: static, SPARSITY", "algorithm: static, init_method: topk, SPARSITY",
        "algorithm: gmp, update: {freq: 2}, sparsity: {type: polynomial, init: 0, final: FINAL, "
        "start: 0, end: 6},",
        "algorithm: saliency, update: {freq: 2}, sparsity: {type: polynomial, init: 0, final: "
        "FINAL, start: 0, end: 6},",
        "algorithm: set, update: {freq: 2}, SPARSITY",
        "algorithm: set, drop_fraction: 0.6, update: {freq: 2, start: 2}, SPARSITY",
        "algorithm: rigl, update: {freq: 2}, SPARSITY",
        "algorithm: snfs, update: {freq: 2}, SPARSITY", "algorithm: snip, scope: layer, SPARSITY",
        "algorithm: semi_sparse, SPARSITY",
        "algorithm: semi_sparse, every: 3, decay: 0.001, SPARSITY",
        "algorithm: ste, update: {freq: 2}, SPARSITY",
        "algorithm: acdc, update: {freq: 3, start: 1}, SPARSITY"));

// The states of ste are those of its dense master.
void expect_zeros_outside(const std::string& algorithm, const Parameter& parameter) {
  if (algorithm != "ste") return expect_zero_outside(parameter);
  const std::vector<float> values = whole(parameter);
  const ByteArray mask = parameter.mask();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(mask.values[i] != 0 || values[i] == 0.0f);
}

// Whole groups are pruned to n of m, one after the other, from as many full ones as the schedule
// begins with.
TEST(GradualStructure, BeginsWithFullGroups) {
  register_builtins();
  for (const char* algorithm : {"gmp", "saliency", "ste"}) {
    for (const char* init_method : {"random", "topk"}) {
      for (const auto& [init, initial] : {std::pair("0", 192), std::pair("0.25", 144)}) {
        const std::string entry =
            std::string("{algorithm: ") + algorithm + ", init_method: " + init_method +
            ", update: {freq: 1}, param_filter: fc1.weight, pattern: {type: nm, n: 2, m: 4}, "
            "sparsity: {type: polynomial, init: " +
            init + ", final: 0.5, start: 0, end: 4, power: 1}}";
        const auto gradual = configure(parse_yaml(entry, "c.yaml"), 0);
        EXPECT_EQ(gradual->first_masks(), initial < 192 ? FirstMasks::Made : FirstMasks::Own)
            << entry;
        TestModel model;
        model.apply(*gradual);
        const auto full_groups = [&] {
          const ByteArray mask = model.weight().mask();
          int64_t full = 0;
          for (size_t i = 0; i < mask.values.size(); i += 4) {
            const int kept =
                mask.values[i] + mask.values[i + 1] + mask.values[i + 2] + mask.values[i + 3];
            EXPECT_TRUE(kept == 2 || kept == 4) << entry;
            full += kept == 4 ? 1 : 0;
          }
          return full;
        };
        EXPECT_EQ(model.weight().pattern()->nnz(), initial) << entry;
        int64_t full = full_groups();
        for (int step = 1; step <= 4; ++step) {
          model.step();
          EXPECT_LT(full_groups(), full) << entry << " step " << step;
          full = full_groups();
        }
        EXPECT_EQ(full, 0) << entry;
        expect_zeros_outside(algorithm, model.weight());
      }
    }
  }
}

// What drops and grows keeps n of m from the first mask on.
TEST(GradualStructure, IsNotForWhatDropsAndGrows) {
  register_builtins();
  for (const char* algorithm : {"set", "rigl", "snfs"}) {
    const auto made = configure(
        parse_yaml(std::string("{algorithm: ") + algorithm +
                       ", update: {freq: 1}, param_filter: fc1.weight, pattern: {type: nm, n: 2, "
                       "m: 4}, sparsity: {type: linear, init: 0.25, slope: 0.125}}",
                   "c.yaml"),
        0);
    TestModel model;
    model.apply(*made);
    EXPECT_EQ(model.weight().pattern()->nnz(), 96) << algorithm;
    EXPECT_EQ(made->plan(2)[0].final_nnz, 96) << algorithm;
    model.step();
    EXPECT_EQ(model.weight().pattern()->nnz(), 96) << algorithm;
  }
}

// An unstructured mask with more nonzeros than the target: whole groups remain.
TEST(GradualStructure, FollowsAnUnstructuredPhase) {
  register_builtins();
  for (const char* algorithm : {"gmp", "ste"}) {
    const auto phases = configure(
        parse_yaml(
            std::string("phases: [{until: 1, algorithm: static, sparsity: 0.1}, {algorithm: ") +
                algorithm +
                ", update: {freq: 1}, pattern: {type: nm, n: 2, m: 4}, sparsity: {type: "
                "polynomial, init: 0.25, final: 0.5, start: 0, end: 2, power: 1}}]",
            "c.yaml"),
        0);
    TestModel model;
    model.apply(*phases);
    std::vector<int64_t> counts;
    for (int i = 0; i < 3; ++i) {
      model.step();
      counts.push_back(model.weight().pattern()->nnz());
    }
    EXPECT_THAT(counts, testing::ElementsAre(144, 120, 96)) << algorithm;
    expect_zeros_outside(algorithm, model.weight());
  }
}

TEST(StructuredConfig, MistakesAreNamed) {
  register_builtins();
  const auto refused = [](const std::string& entry, const std::string& says) {
    const auto make = [&] {
      const auto algorithm = configure(parse_yaml(entry, "c.yaml"), 0);
      TestModel model;
      model.apply(*algorithm);
      for (int i = 0; i < 3; ++i) model.step();
    };
    EXPECT_THAT(make, ThrowsMessage<Error>(testing::HasSubstr(says))) << entry;
  };
  refused("{algorithm: static, pattern: {type: nm, n: 2, m: 5}}",
          "input dimension 12 is not divisible by 5");
  refused("{algorithm: static, pattern: {type: nm, n: 2, m: 5}}", "'fc1.weight' of shape [16, 12]");
  refused("{algorithm: static, pattern: {type: nm, n: 2, m: 4, group: 3}}",
          "output dimension 16 is not divisible by 3");
  refused("{algorithm: static, sparsity: 0.5, pattern: {type: block, rows: 32, cols: 4}}",
          "output dimension 16 is not divisible by 32");
  refused("{algorithm: static, sparsity: 0.9, pattern: {type: nm, n: 2, m: 4}}",
          "has a sparsity of 0.5");
  refused("{algorithm: static, sparsity: 0.0, pattern: {type: nm, n: 2, m: 4}}",
          "has a sparsity of 0.5: leave `sparsity` out");
  refused("{algorithm: static, pattern: {type: nm, n: 4, m: 4}}", "n must be below m = 4");
  refused("{algorithm: static, pattern: {type: nm, n: 4, m: 32}}", "m is at most 16");
  refused("{algorithm: static, pattern: {type: n:m}}", "unknown pattern 'n:m'");
  refused("{algorithm: static, pattern: {type: nm, n: 1, m: 4, transposable: true}}",
          "only 2:4 without groups can be transposable");
  refused("{algorithm: static, pattern: {type: block, rows: 4, cols: 4}}", "needs `sparsity`");
  refused(
      "{algorithm: static, sparsity: 0.5, layout: nm, pattern: {type: block, rows: 4, cols: 4}}",
      "layout nm needs a pattern of its type");
  refused("{algorithm: static, balance_in_groups: 2, pattern: {type: nm, n: 2, m: 4}}",
          "cannot be combined with balance_in_groups");
  refused("{algorithm: static, init_method: balanced, pattern: {type: nm, n: 2, m: 4}}",
          "cannot be combined with init_method 'balanced'");
  refused("{algorithm: static, init_method: from_zeros, pattern: {type: nm, n: 2, m: 4}}",
          "too much is kept");
  refused("{algorithm: set, keep_alive: true, pattern: {type: nm, n: 2, m: 4}}",
          "keep_alive cannot be combined with a pattern");
  refused(
      "{algorithm: gmp, pattern: {type: nm, n: 2, m: 4}, sparsity: {type: linear, init: 0.4, "
      "slope: 0.2}}",
      "allows a sparsity of at most 0.5");
}

}  // namespace
}  // namespace lacuna::structure_test
