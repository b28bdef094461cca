#include "lacuna/framework/kernels/conv/tap_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna::tap_stream_test {
namespace {

struct Sizes {
  int64_t rows = 0, planes = 0, taps = 0, plane_lines = 0, tile_planes = 0;
};

// About `density` of all, row after row with ascending planes, the second row empty; displacements
// of both signs.
std::vector<Tap> draw(const Sizes& sizes, double density) {
  const CounterRng rng(5, "taps");
  std::vector<Tap> all;
  uint64_t drawn = 0;
  for (int64_t row = 0; row < sizes.rows; ++row) {
    for (int64_t plane = 0; plane < sizes.planes; ++plane) {
      for (int64_t tap = 0; tap < sizes.taps; ++tap) {
        if (rng.uniform(drawn++) >= density || row == 1) continue;
        all.push_back({row, plane, tap - sizes.taps / 2, static_cast<uint32_t>(all.size())});
      }
    }
  }
  return all;
}

TapStream stream_of(const std::vector<Tap>& taps, const Sizes& sizes) {
  const TapList list = [&](const std::function<void(const Tap&)>& visit) {
    for (const Tap& tap : taps) visit(tap);
  };
  return make_tap_stream(list, sizes.rows, sizes.planes, sizes.plane_lines, sizes.tile_planes);
}

const std::vector<Sizes> kSizes = {
    {.rows = 7, .planes = 10, .taps = 5, .plane_lines = 31, .tile_planes = 4},
    {.rows = 7, .planes = 12, .taps = 3, .plane_lines = 9, .tile_planes = 4},
    {.rows = 33, .planes = 3, .taps = 9, .plane_lines = 101, .tile_planes = 64},
    {.rows = 1, .planes = 5, .taps = 1, .plane_lines = 3, .tile_planes = 1}};

// Entry by entry: row, line from the first plane of all, element.
using Entry = std::tuple<int64_t, int64_t, uint32_t>;

std::vector<Entry> entries_of(const TapStream& stream, const Sizes& sizes) {
  std::vector<Entry> entries;
  for (const TapTile& tile : stream.tiles) {
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const TapGroup& group = stream.groups[static_cast<size_t>(g)];
      for (int64_t i = 0; i < group.rows; ++i) {
        const int64_t row = stream.rows_in_order[static_cast<size_t>(group.first_row + i)];
        for (int64_t k = 0; k < group.length; ++k) {
          const auto at = static_cast<size_t>(group.first_value + i * group.length + k);
          EXPECT_EQ(stream.offsets[at] % 64, 0);
          entries.emplace_back(row, tile.first_plane * sizes.plane_lines + stream.offsets[at] / 64,
                               stream.source[at]);
        }
      }
    }
  }
  return entries;
}

TEST(TapStream, HoldsEveryNonzeroOnceWhereItIsRead) {
  for (const Sizes& sizes : kSizes) {
    for (const double density : {0.0, 0.1, 0.6, 1.0}) {
      const std::vector<Tap> taps = draw(sizes, density);
      const TapStream stream = stream_of(taps, sizes);
      EXPECT_EQ(stream.rows, sizes.rows);
      EXPECT_EQ(stream.nnz, static_cast<int64_t>(taps.size()));
      EXPECT_EQ(stream.offsets.size(), taps.size());
      EXPECT_EQ(stream.source.size(), taps.size());
      std::vector<Entry> expected;
      for (const Tap& tap : taps) {
        expected.emplace_back(tap.row, tap.plane * sizes.plane_lines + tap.line, tap.element);
      }
      std::vector<Entry> found = entries_of(stream, sizes);
      std::ranges::sort(found);
      std::ranges::sort(expected);
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(TapStream, GoesThroughTilesAndWithinThemThroughRowsByTheirNumberOfNonzeros) {
  for (const Sizes& sizes : kSizes) {
    const std::vector<Tap> taps = draw(sizes, 0.4);
    const TapStream stream = stream_of(taps, sizes);
    ASSERT_EQ(static_cast<int64_t>(stream.tiles.size()),
              (sizes.planes + sizes.tile_planes - 1) / sizes.tile_planes);
    int64_t group_begin = 0, row_begin = 0, value = 0;
    for (size_t t = 0; t < stream.tiles.size(); ++t) {
      const TapTile& tile = stream.tiles[t];
      EXPECT_EQ(tile.first_plane, static_cast<int64_t>(t) * sizes.tile_planes);
      EXPECT_EQ(tile.first_group, group_begin);
      int64_t rows = 0, length = -1;
      for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
        const TapGroup& group = stream.groups[static_cast<size_t>(g)];
        EXPECT_GT(group.length, length);
        EXPECT_GT(group.rows, 0);
        EXPECT_EQ(group.first_row, row_begin + rows);
        EXPECT_EQ(group.first_value, value);
        length = group.length;
        rows += group.rows;
        value += group.rows * group.length;
      }
      EXPECT_EQ(rows, sizes.rows);  // those that have nothing there too
      std::vector<uint32_t> order(stream.rows_in_order.data() + row_begin,
                                  stream.rows_in_order.data() + row_begin + rows);
      std::ranges::sort(order);
      for (int64_t row = 0; row < rows; ++row) {
        EXPECT_EQ(order[static_cast<size_t>(row)], static_cast<uint32_t>(row));
      }
      group_begin = tile.end_group;
      row_begin += rows;
    }
    EXPECT_EQ(group_begin, static_cast<int64_t>(stream.groups.size()));
    EXPECT_EQ(value, stream.nnz);
    EXPECT_EQ(static_cast<int64_t>(stream.rows_in_order.size()), row_begin + 2);
  }
}

// Sums have one order, whatever else is in a tile.
TEST(TapStream, KeepsTheOrderOfARowsNonzeros) {
  for (const Sizes& sizes : kSizes) {
    const TapStream stream = stream_of(draw(sizes, 0.7), sizes);
    std::map<int64_t, uint32_t> last;
    for (const auto& [row, line, element] : entries_of(stream, sizes)) {
      if (last.contains(row)) {
        EXPECT_GT(element, last[row]);
      }
      last[row] = element;
    }
  }
}

TEST(TapStream, RowsToPrefetchBehindTheLastOneExist) {
  for (const Sizes& sizes : kSizes) {
    const TapStream stream = stream_of(draw(sizes, 0.5), sizes);
    const size_t size = stream.rows_in_order.size();
    EXPECT_LT(stream.rows_in_order[size - 1], static_cast<uint32_t>(sizes.rows));
    EXPECT_LT(stream.rows_in_order[size - 2], static_cast<uint32_t>(sizes.rows));
  }
}

TEST(TapStream, OfNothing) {
  const TapStream no_rows =
      stream_of({}, {.rows = 0, .planes = 3, .plane_lines = 5, .tile_planes = 2});
  EXPECT_EQ(no_rows.nnz, 0);
  EXPECT_TRUE(no_rows.groups.empty());
  EXPECT_EQ(no_rows.rows_in_order.size(), 0u);
  const TapStream no_planes =
      stream_of({}, {.rows = 3, .planes = 0, .plane_lines = 5, .tile_planes = 2});
  ASSERT_EQ(no_planes.tiles.size(), 1u);  // outputs are written all the same
  ASSERT_EQ(no_planes.groups.size(), 1u);
  EXPECT_EQ(no_planes.groups[0].rows, 3);
  EXPECT_EQ(no_planes.groups[0].length, 0);
}

TEST(TapStream, BytesGrowByEightForEachNonzero) {
  const Sizes sizes{.rows = 1, .planes = 8, .taps = 1, .plane_lines = 3, .tile_planes = 8};
  const int64_t few = stream_of({{0, 0, 0, 0}}, sizes).bytes();
  const int64_t more = stream_of({{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 7, 0, 2}}, sizes).bytes();
  EXPECT_EQ(more - few, 2 * 8);
  EXPECT_GT(few, 0);
}

}  // namespace
}  // namespace lacuna::tap_stream_test
