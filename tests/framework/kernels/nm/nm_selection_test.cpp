#include "lacuna/framework/kernels/nm/nm_selection.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/nm/nm_selection_reference.hpp"
#include "throws.h"

namespace lacuna::nm_selection_test {
namespace {

/// Random weights; `coarse` ones have few values, zeros of both signs, infinities and NaN.
std::vector<float> random_weights(int64_t count, bool coarse) {
  const CounterRng rng(11, "weights");
  std::vector<float> w(static_cast<size_t>(count));
  for (size_t i = 0; i < w.size(); ++i) {
    const float u = 2.0f * rng.uniform(i) - 1.0f;
    w[i] = coarse ? std::round(3.0f * u) : u;
    const uint64_t special = coarse ? rng.below(i + w.size(), 40) : 40;
    if (special == 0) w[i] = std::numeric_limits<float>::quiet_NaN();
    if (special == 1) w[i] = -std::numeric_limits<float>::quiet_NaN();
    if (special == 2) w[i] = -std::numeric_limits<float>::infinity();
    if (special == 3) w[i] = std::numeric_limits<float>::infinity();
    if (special == 4) w[i] = std::numeric_limits<float>::denorm_min();
  }
  return w;
}

BitMask plain_selection(const NmMatrixForm& form, const std::vector<float>& w) {
  BitMask mask = BitMask::zeros(static_cast<int64_t>(w.size()));
  for (int64_t at = 0; at < mask.size(); at += form.m()) {
    const uint32_t bits = reference::select_of_group(w.data() + at, form.n(), form.m());
    for (int i = 0; i < form.m(); ++i) {
      if ((bits >> i & 1) != 0) mask.set(at + i);
    }
  }
  return mask;
}

const std::vector<std::pair<int, int>>& formats() {
  static const std::vector<std::pair<int, int>> all = {{1, 4},  {2, 4},  {1, 8},  {2, 8},  {4, 8},
                                                       {1, 16}, {2, 16}, {4, 16}, {1, 2},  {3, 4},
                                                       {4, 4},  {2, 7},  {8, 16}, {5, 10}, {1, 1}};
  return all;
}

TEST(NmSelection, IsThatOfTheReference) {
  for (const auto& [n, m] : formats()) {
    for (const int64_t groups : {0, 1, 3, 31, 65, 300}) {
      for (const bool coarse : {false, true}) {
        const NmMatrixForm form{
            .rows = 5, .columns = groups * m, .pattern = PatternShape::nm(n, m)};
        const std::vector<float> w = random_weights(form.rows * form.columns, coarse);
        const BitMask mask = nm_select(form, w);
        EXPECT_EQ(mask, plain_selection(form, w)) << n << ":" << m << ", " << groups << " groups";
        EXPECT_EQ(mask.count(), form.rows * groups * n);
      }
    }
  }
}

TEST(NmSelection, TakesTheFirstOfEqualWeightsAndNaNLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> w = {1, -1, 1, 1, 0, -0.0f, nan, 0, nan, nan, nan, nan, nan, 0, nan, 2};
  EXPECT_EQ(nm_select({.rows = 2, .columns = 8, .pattern = PatternShape::nm(2, 4)}, w).to_bytes(),
            (std::vector<uint8_t>{1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1}));
}

TEST(NmSelection, WithValuesIsTheMatrixOfTheMask) {
  for (const auto& [n, m] : formats()) {
    for (const int64_t groups : {1, 32, 37, 130}) {
      const NmMatrixForm form{.rows = 6, .columns = groups * m, .pattern = PatternShape::nm(n, m)};
      const std::vector<float> w = random_weights(form.rows * form.columns, false);
      NmMatrix matrix;
      std::vector<float> values(static_cast<size_t>(form.stored()), NAN);
      nm_select_values(form, w, matrix, values);
      const BitMask mask = plain_selection(form, w);
      std::vector<int64_t> row_begin = {0};
      std::vector<uint32_t> column;
      for (int64_t i = 0; i < mask.size(); ++i) {
        if (mask.test(i)) column.push_back(static_cast<uint32_t>(i % form.columns));
        if ((i + 1) % form.columns == 0) row_begin.push_back(static_cast<int64_t>(column.size()));
      }
      const NmMatrix expected = nm_matrix(form, row_begin, column);
      EXPECT_EQ(matrix.codes, expected.codes) << n << ":" << m << ", " << groups << " groups";
      EXPECT_EQ(matrix.unused, expected.unused);
      int64_t used = 0;
      nm_for_each(expected, [&](int64_t slot, int64_t row, int64_t c) {
        ASSERT_EQ(values[static_cast<size_t>(slot)],
                  w[static_cast<size_t>(row * form.columns + c)]);
        ++used;
      });
      for (const uint32_t slot : expected.unused) ASSERT_EQ(values[slot], 0.0f);
      EXPECT_EQ(used, mask.count());
    }
  }
}

BitMask plain_tiles(int64_t rows, int64_t columns, const std::vector<float>& w) {
  BitMask mask = BitMask::zeros(rows * columns);
  for (int64_t r = 0; r < rows; r += 4) {
    for (int64_t c = 0; c < columns; c += 4) {
      const uint32_t bits = reference::select_tile(w.data() + r * columns + c, columns);
      for (int i = 0; i < 16; ++i) {
        if ((bits >> i & 1) != 0) mask.set((r + i / 4) * columns + c + i % 4);
      }
    }
  }
  return mask;
}

TEST(TransposableSelectionTest, IsThatOfTheReference) {
  for (const auto& [rows, columns] :
       {std::pair{4, 4}, std::pair{8, 60}, std::pair{36, 132}, std::pair{20, 64}, std::pair{8, 516},
        std::pair{4, 1100}, std::pair{0, 8}, std::pair{4, 0}}) {
    for (const bool coarse : {false, true}) {
      const std::vector<float> w = random_weights(int64_t{rows} * columns, coarse);
      EXPECT_EQ(transposable_select(rows, columns, w), plain_tiles(rows, columns, w));
    }
  }
}

int most_in_a_line(uint32_t bits) {
  int most = 0;
  for (int i = 0; i < 4; ++i) {
    most =
        std::max({most, std::popcount(bits & 0xfu << (4 * i)), std::popcount(bits & 0x1111u << i)});
  }
  return most;
}

double sum_of(const float* w, uint32_t bits) {
  double sum = 0.0;
  for (int i = 0; i < 16; ++i) {
    if ((bits >> i & 1) != 0) sum += std::abs(double{w[i]});
  }
  return sum;
}

TEST(TransposableSelectionTest, IsTheBestOfAllPatterns) {
  std::vector<uint32_t> patterns;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    if (std::popcount(bits) == 8 && most_in_a_line(bits) == 2) patterns.push_back(bits);
  }
  ASSERT_EQ(patterns.size(), 90u);
  const std::vector<float> w = random_weights(16 * 200, false);
  for (size_t at = 0; at < w.size(); at += 16) {
    const float* tile = w.data() + at;
    double best = 0.0;
    for (const uint32_t bits : patterns) best = std::max(best, sum_of(tile, bits));
    EXPECT_NEAR(sum_of(tile, reference::select_tile(tile, 4)), best, 1e-6);
  }
}

TEST(TransposableSelectionTest, TheFirstOfEqualPatterns) {
  const std::vector<float> ones(16, 1.0f), zeros(16, 0.0f), nans(16, NAN);
  for (const auto& w : {ones, zeros, nans}) {
    // Upper rows 01 and 01, lower rows 23 and 23.
    EXPECT_EQ(reference::select_tile(w.data(), 4), 0xcc33u);
  }
}

TEST(NmSelection, DoesNotDependOnTheNumberOfThreads) {
  const NmMatrixForm form{.rows = 1500, .columns = 132, .pattern = PatternShape::nm(2, 4)};
  const std::vector<float> w = random_weights(form.rows * form.columns, false);
  const auto all = [&] {
    NmMatrix matrix;
    std::vector<float> values(static_cast<size_t>(form.stored()));
    nm_select_values(form, w, matrix, values);
    return std::tuple(nm_select(form, w), matrix.codes, values,
                      transposable_select(form.rows, form.columns, w));
  };
  const int before = num_threads();
  set_num_threads(1);
  const auto expected = all();
  set_num_threads(3);
  EXPECT_EQ(all(), expected);
  set_num_threads(before);
}

TEST(NmSelection, RefusesOtherSizes) {
  const std::vector<float> w(24);
  expect_throws<ShapeError>([&] { nm_select({.rows = 2, .columns = 8}, w); },
                            "2 rows of 8 was given 24 weights");
  expect_throws<ShapeError>([&] { transposable_select(6, 4, w); }, "divisible by 4");
}

}  // namespace
}  // namespace lacuna::nm_selection_test
