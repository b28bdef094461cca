// Patterns found in masks: N:M, shared by rows, transposable; blocks; and what is taken for none.
#include "lacuna/framework/layouts/find_pattern.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "throws.h"

namespace lacuna::find_pattern_test {
namespace {

// Of a matrix, or of a convolution's weight [out, in, kernel], by row, channel and tap.
BitMask mask_of(const Shape& shape, const std::function<bool(int64_t, int64_t, int64_t)>& is_kept) {
  BitMask mask = BitMask::zeros(shape.numel());
  const int64_t taps = matrix_taps(shape), columns = matrix_columns(shape);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    if (is_kept(i / columns, i % columns / taps, i % taps)) mask.set(i);
  }
  return mask;
}

std::string found(const Shape& shape,
                  const std::function<bool(int64_t, int64_t, int64_t)>& is_kept) {
  return find_pattern(shape, mask_of(shape, is_kept)).to_string();
}

// n of m units, which ones being different from cell to cell.
bool in_cell(uint64_t seed, int64_t row, int64_t column, int n, int m) {
  const CounterRng rng(seed, "cells");
  const auto cell = static_cast<uint64_t>(row * 1000 + column / m);
  const auto first = static_cast<int64_t>(rng.bits(cell) % static_cast<uint64_t>(m));
  return (column % m - first + m) % m < n;
}

TEST(FindPattern, NmIsFoundByTheSmallestM) {
  const Shape shape{24, 48};
  const auto nm = [&](int n, int m) {
    return found(shape, [=](int64_t r, int64_t c, int64_t) { return in_cell(1, r, c, n, m); });
  };
  EXPECT_EQ(nm(2, 4), "nm 2:4");
  EXPECT_EQ(nm(1, 4), "nm 1:4");
  EXPECT_EQ(nm(1, 2), "nm 1:2");
  EXPECT_EQ(nm(4, 8), "nm 4:8");
  EXPECT_EQ(nm(1, 3), "nm 1:3");
  EXPECT_EQ(nm(2, 16), "nm 2:16");
}

TEST(FindPattern, AFewMorePrunedPositionsDoNotHideIt) {
  const auto kept = [](int64_t r, int64_t c, int64_t) {
    return in_cell(2, r, c, 2, 4) && !(r == 3 && c < 8);
  };
  EXPECT_EQ(found({32, 64}, kept), "nm 2:4");
}

TEST(FindPattern, OnePositionTooManyIsNoPattern) {
  const auto kept = [](int64_t r, int64_t c, int64_t) {
    return in_cell(2, r, c, 2, 4) || (r == 5 && c < 4);
  };
  EXPECT_EQ(found({32, 64}, kept), "unstructured");
}

TEST(FindPattern, RowsThatShareTheirCellsAreFound) {
  const auto kept = [](int64_t r, int64_t c, int64_t) { return in_cell(3, r / 8, c, 2, 4); };
  EXPECT_EQ(found({32, 64}, kept), "nm 2:4 g8");
}

TEST(FindPattern, TransposableTilesAreFound) {
  // Two of four in each row and column of a tile, by a checkerboard that differs between tiles.
  const auto kept = [](int64_t r, int64_t c, int64_t) {
    return (r % 4 + c % 4 + (r / 4 * 7 + c / 4) % 3) % 4 < 2;
  };
  EXPECT_EQ(found({16, 16}, kept), "nm 2:4 transposable");
}

TEST(FindPattern, BlocksAreTheLargestThatAreWhole) {
  const CounterRng rng(4, "blocks");
  const auto block = [&](int64_t rows, int64_t columns) {
    return [&rng, rows, columns](int64_t r, int64_t c, int64_t) {
      return rng.bits(static_cast<uint64_t>(r / rows * 1000 + c / columns)) % 5 == 0;
    };
  };
  EXPECT_EQ(found({64, 64}, block(16, 16)), "block 16x16");
  EXPECT_EQ(found({64, 64}, block(4, 1)), "block 4x1");
  EXPECT_EQ(found({64, 60}, block(1, 4)), "block 1x4");
  EXPECT_EQ(found({64, 64}, block(1, 1)), "unstructured");
}

TEST(FindPattern, ConvolutionsAreLookedAtTapByTap) {
  const Shape shape{8, 16, 3, 3};
  const auto kept = [](int64_t r, int64_t c, int64_t tap) {
    return in_cell(static_cast<uint64_t>(tap), r, c, 2, 4);
  };
  EXPECT_EQ(found(shape, kept), "nm 2:4");
  const CounterRng rng(6, "taps");
  const auto block = [&](int64_t r, int64_t c, int64_t tap) {
    return rng.bits(static_cast<uint64_t>((r / 4 * 100 + c / 8) * 9 + tap)) % 3 == 0;
  };
  EXPECT_EQ(found(shape, block), "block 4x8");
}

TEST(FindPattern, WhatHasNothingToFindIsUnstructured) {
  EXPECT_EQ(found({4, 8}, [](int64_t, int64_t, int64_t) { return true; }), "unstructured");
  EXPECT_EQ(found({4, 8}, [](int64_t, int64_t, int64_t) { return false; }), "unstructured");
  EXPECT_EQ(find_pattern({6}, BitMask::from_bytes(std::vector<uint8_t>{1, 0, 1, 0, 1, 0})),
            PatternShape());
  // Very sparse at random: no cell has more than two of four, which says nothing.
  const CounterRng rng(9, "sparse");
  const auto kept = [&](int64_t r, int64_t c, int64_t) {
    return rng.bits(static_cast<uint64_t>(r * 100 + c)) % 100 == 0;
  };
  EXPECT_EQ(found({20, 40}, kept), "unstructured");
  expect_throws<ShapeError>([] { find_pattern({4, 4}, BitMask::zeros(15)); }, "[4, 4]");
}

}  // namespace
}  // namespace lacuna::find_pattern_test
