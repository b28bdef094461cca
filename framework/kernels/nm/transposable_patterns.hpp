// The 90 patterns of a tile of 4 × 4 with two weights in each row and column, without listing them.
//
// The upper two rows have 0, 1 or 2 weights in each column, the lower two the rest to two.
//
// clang-format off
//     2 of two columns, 0 of two   Both halves take whole columns. Sharing out columns 0 and 1 between
//                                  the halves, and 2 and 3 (or 0 and 2, and 1 and 3), gives all six.
//     2, 1, 1, 0                   Two columns are shared out between the halves, the two others, in
//                                  each half, between its rows.
//     1, 1, 1, 1                   In each half columns 0 and 1 are shared out between its rows, and 2
//                                  and 3 (or 0 and 2, and 1 and 3).
// clang-format on
//
// So of each pair of columns three choices are made, each between two sums, and the best pattern is
// the largest of nine sums of these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lacuna {

struct ColumnPair {
  uint32_t first = 0, second = 0;
};

/// What pair i leaves is pair 5 − i.
inline constexpr std::array<ColumnPair, 6> kColumnPairs = {
    {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};

/// The bit of each row's first weight; that of column c is `<< c`.
inline constexpr std::array<uint32_t, 4> kRowUnits = {0x1, 0x10, 0x100, 0x1000};

}  // namespace lacuna
