// Weights of convolutions, [out, in / groups, kh, kw]: what selections, groups, first masks and
// targets make of channels and taps.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/sparsity/masks/mask_init.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/masks/units.hpp"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/sparsity_options.h"
#include "sparsity/masks/by_hand.h"
#include "throws.h"

namespace lacuna::taps_test {
namespace {

using Norm = PatternShape::Norm;

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {Shape{8, 16, 3, 3}, Shape{16, 8, 1, 2}, Shape{8, 16, 5},
                                         Shape{8, 8, 1, 1}, Shape{16, 16}};
  return all;
}

const std::vector<PatternShape>& patterns() {
  static const std::vector<PatternShape> all = {
      PatternShape::nm(2, 4),    PatternShape::nm(1, 4),
      PatternShape::nm(3, 8),    PatternShape::nm(2, 4, 2),
      PatternShape::nm(1, 4, 8), PatternShape::transposable_2_4(),
      PatternShape::block(2, 4), PatternShape::block(4, 2, Norm::L2),
      PatternShape::block(1, 8), PatternShape::block(8, 1),
      PatternShape::block(1, 1)};
  return all;
}

// Small whole numbers, so that many are equal; of transposable tiles, which have a rule of their
// own for equal sums, numbers of which no two sums are. None is rounded.
by_hand::Scores scores_for(const PatternShape& pattern, const Shape& shape, const char* name) {
  const CounterRng rng(7, name);
  by_hand::Scores scores(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<float>(rng.bits(i) % (pattern.is_transposable() ? 1u << 20 : 6u));
  }
  return scores;
}

by_hand::Scores of_present(const MaskSet& mask, const by_hand::Scores& scores) {
  by_hand::Scores own;
  mask.positions().for_each([&](int64_t i) { own.push_back(scores[static_cast<size_t>(i)]); });
  return own;
}

TEST(Taps, SelectionsAreThoseMadeByHandTiesIncluded) {
  for (const Shape& shape : shapes()) {
    for (const PatternShape& pattern : patterns()) {
      const std::string what = pattern.description() + " of " + shape.to_string();
      const MaskSelector selector({}, pattern, shape);
      const by_hand::Weight weight(pattern, shape);
      const int64_t units = weight.unit_count(), size = weight.unit_size();
      const by_hand::Scores w = scores_for(pattern, shape, "w"),
                            g = scores_for(pattern, shape, "g");
      const ScoreRows rows = rows_of(Tensor::from(shape, g));
      const MaskSet all = MaskSet::all(shape);
      for (const int64_t part : {9, 7, 5, 2}) {
        const int64_t count = units * part / 10;
        const MaskSet pruned = selector.prune_gradually(all, w, count * size);
        ASSERT_EQ(pruned.bits(), weight.prune_gradually(all.bits(), w, count)) << what;
        const MaskSet kept = selector.keep(pruned, of_present(pruned, w), count * size);
        ASSERT_EQ(kept.bits(), weight.keep(pruned.bits(), w, count)) << what;
        EXPECT_TRUE(weight.fits(kept.bits())) << what;
        const MaskSet grown =
            selector.grow_maximum(rows, units * size * 6 / 10 / size * size, kept);
        ASSERT_EQ(grown.bits(), weight.grow_maximum(kept.bits(), g, units * 6 / 10)) << what;
        EXPECT_TRUE(weight.fits(grown.bits())) << what;
        EXPECT_EQ(selector.fit(grown), MaskSelector::Fit::Whole) << what;
      }
    }
  }
}

TEST(Taps, TheKernelsSelectionIsTheOneMadeByHand) {
  for (const Shape& shape : shapes()) {
    for (const PatternShape& pattern : patterns()) {
      const by_hand::Weight weight(pattern, shape);
      by_hand::Scores w = scores_for(pattern, shape, "kernel");
      const int64_t count = weight.unit_count() * 3 / 10;
      const BitMask expected = weight.grow_maximum(BitMask::zeros(shape.numel()), w, count);
      for (size_t i = 0; i < w.size(); i += 3) w[i] = -w[i];
      const MaskSet largest = MaskSelector({}, pattern, shape)
                                  .largest(Tensor::from(shape, w), count * weight.unit_size());
      EXPECT_EQ(largest.bits(), expected) << pattern.description() << " of " << shape.to_string();
      EXPECT_TRUE(largest.is_known_to_have(pattern));
    }
  }
}

TEST(Taps, RandomGrowthStaysWithinThePattern) {
  const Shape shape{8, 16, 3, 3};
  for (const PatternShape& pattern : patterns()) {
    const MaskSelector selector({}, pattern, shape);
    const by_hand::Weight weight(pattern, shape);
    const int64_t size = weight.unit_size();
    const int64_t count = pattern.is_nm()
                              ? static_cast<int64_t>(pattern.full_density() * 8 * 16 * 9)
                              : weight.unit_count() / 3 * size;
    const MaskSet grown = selector.grow_random(CounterRng(3, "grow"), count, MaskSet(shape));
    EXPECT_EQ(grown.count(), count) << pattern.description();
    EXPECT_TRUE(weight.fits(grown.bits())) << pattern.description();
    const MaskSet kept = selector.keep(grown, of_present(grown, scores_for(pattern, shape, "w")),
                                       grown.count() / 2 / size * size);
    const MaskSet again = selector.grow_random(CounterRng(4, "grow"), count, kept);
    EXPECT_EQ(count_common(again, kept), kept.count());
    EXPECT_TRUE(weight.fits(again.bits())) << pattern.description();
  }
}

// In the order of their first positions, blocks of the same channels come before those of the next
// ones, tap by tap.
TEST(Taps, TiesOfBlocksGoToTheLowerFirstPosition) {
  const Shape shape{1, 4, 1, 2};
  const MaskSelector selector({}, PatternShape::block(1, 2), shape);
  const std::vector<float> same(8, 1.0f);
  const std::vector<uint8_t> expected = {1, 1, 1, 1, 0, 0, 0, 0};  // channels 0 and 1, both taps
  EXPECT_EQ(selector.keep(MaskSet::all(shape), same, 4).bits().to_bytes(), expected);
  const Tensor weights = Tensor::from(shape, same);
  EXPECT_EQ(selector.grow_maximum(rows_of(weights), 4, MaskSet(shape)).bits().to_bytes(), expected);
  EXPECT_EQ(selector.largest(weights, 4).bits().to_bytes(), expected);
}

TEST(Taps, UnitsGoThereAndBackAndRefuseParts) {
  for (const Shape& shape : {Shape{4, 6, 2, 2}, Shape{4, 6, 3}, Shape{4, 6}}) {
    const PatternShape blocks = PatternShape::block(2, 3);
    const int64_t taps = matrix_taps(shape), columns = 2 * taps;
    const Positions units = Positions::of(
        Shape{2, columns}, std::vector<int64_t>{0, columns - 1, columns, 2 * columns - 1});
    const Positions elements = to_elements(units, blocks, taps);
    EXPECT_EQ(elements.count(), 24);
    EXPECT_EQ(to_units(elements, blocks, taps), units);
    EXPECT_EQ(unit_scores(units, std::vector<float>(24, -2.0f), blocks, taps),
              std::vector<float>(4, 12.0f));
    for (size_t missing = 0; missing < 24; ++missing) {
      const Positions part = elements.filtered([&](size_t place) { return place != missing; });
      EXPECT_THROW(to_units(part, blocks, taps), ShapeError) << missing;
    }
    for (int64_t more = 0; more < shape.numel(); ++more) {
      if (elements.contains(more)) continue;
      EXPECT_THROW(to_units(elements.with(std::vector<int64_t>{more}), blocks, taps), ShapeError)
          << more;
    }
  }
  // Channels 3 to 5 of tap 1 are columns 7, 9 and 11.
  const Positions part = Positions::of(Shape{1, 12}, std::vector<int64_t>{7, 9});
  expect_throws<ShapeError>([&] { to_units(part, PatternShape::block(1, 3), 2); },
                            "the part at row 0, column 7 is incomplete");
}

TEST(Taps, ARefusalSaysWhereAMaskLeavesThePattern) {
  const Shape shape{2, 8, 1, 3};
  const MaskSelector selector({}, PatternShape::nm(2, 4), shape);
  // Channels 4, 5 and 7 at tap 2 of output 1; three of the first channels' at several taps.
  const MaskSet mask(shape, Positions::of(shape, std::vector<int64_t>{0, 1, 2, 3, 38, 41, 47}));
  EXPECT_EQ(selector.fit(mask), MaskSelector::Fit::None);
  expect_throws<ConfigError>(
      [&] { selector.refuse("conv.weight", mask); },
      "parameter 'conv.weight': the mask is not 2:4: too much is kept at row "
      "1, column 14");
}

TEST(Taps, GroupsOfInputsAreChannelsWithAllTheirTaps) {
  const Shape shape{4, 6, 1, 3};
  const GroupIndex index(ScoreGroups::columns(3), shape);
  ASSERT_EQ(index.count(), 3);
  for (int64_t group = 0; group < 3; ++group) {
    std::vector<int64_t> expected, found;
    for (int64_t i = 0; i < shape.numel(); ++i) {
      if (i / 3 % 6 / 2 == group) expected.push_back(i);
    }
    for (int64_t place = 0; place < index.size(); ++place)
      found.push_back(index.flat(group, place));
    EXPECT_EQ(found, expected);
    for (const int64_t i : expected) EXPECT_EQ(index.of(i / 18, i % 18), group);
  }
  expect_throws<ShapeError>(
      [&] { ScoreGroups::columns(9).require_fit("conv.weight", shape); },
      "'conv.weight' of shape [4, 6, 1, 3] has 6 input channels, which balance_in_groups = 9 does "
      "not divide");
}

// The rules of matrices hold for out × (in / groups · kh · kw).
TEST(Taps, FirstMasksWithoutAPatternAreThoseOfTheMatrix) {
  Parameter weight(Shape{8, 6, 3, 3}, Initializer::normal(1.0));
  Parameter matrix(Shape{8, 54}, Initializer::normal(1.0));
  weight.set_name("w");
  matrix.set_name("w");
  for (const char* method : {"random", "balanced", "topk", "from_zeros", "checkerboard"}) {
    const auto make = [&](const Parameter& parameter) {
      return InitMethod(method).make({.parameter = parameter,
                                      .sparsity = 0.75f,
                                      .nnz = 108,
                                      .groups = ScoreGroups::columns(2),
                                      .pattern = {},
                                      .seed = 1});
    };
    const MaskSet found = make(weight);
    EXPECT_EQ(found.shape(), weight.shape());
    EXPECT_EQ(found.bits(), make(matrix).bits()) << method;
  }
}

TEST(Taps, TargetsCountChannelsForErAndKernelsForErk) {
  const std::vector<Shape> shapes = {Shape{16, 8, 3, 3}, Shape{32, 16, 1, 1}, Shape{10, 32}};
  const auto raw = [](const Shape& s, bool kernels) {
    double sum = 0.0, product = 1.0;
    for (int i = 0; i < (kernels ? s.rank() : 2); ++i) {
      sum += static_cast<double>(s[i]);
      product *= static_cast<double>(s[i]);
    }
    return sum / product;
  };
  for (const bool kernels : {false, true}) {
    const Distribution distribution{kernels ? Distribution::Kind::Erk : Distribution::Kind::Er};
    const std::vector<double> densities = layer_densities(distribution, 0.1, shapes);
    for (size_t i = 1; i < shapes.size(); ++i) {
      ASSERT_LT(densities[i], 1.0);
      EXPECT_NEAR(densities[i] / densities[0], raw(shapes[i], kernels) / raw(shapes[0], kernels),
                  1e-9);
    }
  }
}

TEST(Taps, TargetsOfBlocksCountBlocksOfChannelsAtEachTap) {
  const PatternShape block = PatternShape::block(4, 2);
  EXPECT_EQ(block.units(Shape{16, 8, 3, 3}), (Shape{4, 4, 3, 3}));
  SparsityOptions options;
  options.sparsity = 0.9;
  options.pattern = block;
  options.distribution = {Distribution::Kind::Er};
  const std::vector<Shape> whole = {Shape{16, 8, 3, 3}, Shape{16, 16}};
  std::vector<int64_t> expected =
      distribute_nnz(options.distribution, 0.9f, {Shape{4, 4, 3, 3}, Shape{4, 8}});
  for (int64_t& count : expected) count *= 8;
  EXPECT_EQ(options.targets_at(0, 0, whole), expected);
}

TEST(Taps, AFanInIsOverChannelsAndTaps) {
  SparsityOptions options;
  options.sparsity = SparsityTarget::fan_in(4.0);
  EXPECT_EQ(options.targets_at(0, 0, {Shape{16, 8, 3, 3}, Shape{3, 1, 1, 2}}),
            (std::vector<int64_t>{64, 6}));
  EXPECT_DOUBLE_EQ(options.sparsity.sparsity_at(0, 0, Shape{16, 8, 3, 3}), 1.0 - 4.0 / 72.0);
}

}  // namespace
}  // namespace lacuna::taps_test
