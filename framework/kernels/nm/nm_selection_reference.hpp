// The selections of N:M sparsity in plain C++: see nm_selection.hpp.
//
// The 90 patterns of a tile of 4 × 4 with two weights per row and column, without a list of them.
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
#include <bit>
#include <cmath>
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

namespace lacuna::reference {

/// Orders |w|, NaN being −1.
inline int32_t magnitude_key(float w) {
  const uint32_t bits = std::bit_cast<uint32_t>(w) & 0x7fffffffu;
  return bits > 0x7f800000u ? -1 : static_cast<int32_t>(bits);
}

/// The bits of the n largest of m.
inline uint32_t select_of_group(const float* w, int n, int m) {
  uint32_t kept = 0;
  for (int i = 0; i < m; ++i) {
    int before = 0;  // how many come before it
    for (int j = 0; j < m; ++j) {
      const int32_t mine = magnitude_key(w[i]), other = magnitude_key(w[j]);
      before += other > mine || (other == mine && j < i) ? 1 : 0;
    }
    if (before < n) kept |= 1u << i;
  }
  return kept;
}

/// A sum of |w|, and the bits of its weights.
struct Candidate {
  float sum = 0.0f;
  uint32_t bits = 0;
};
inline Candidate larger(const Candidate& a, const Candidate& b) { return b.sum > a.sum ? b : a; }
inline Candidate both(const Candidate& a, const Candidate& b) {
  return {a.sum + b.sum, a.bits | b.bits};
}

/// A tile of 4 × 4, four bits per row. Of equal sums, the one compared first is selected.
inline uint32_t select_tile(const float* w, int64_t stride) {
  using Line = std::array<float, 4>;
  std::array<Line, 4> rows;
  for (size_t i = 0; i < 16; ++i) {
    const float a = std::abs(w[static_cast<int64_t>(i / 4) * stride + static_cast<int64_t>(i % 4)]);
    rows[i / 4][i % 4] = std::isnan(a) ? 0.0f : a;
  }
  Line upper, lower;
  for (size_t c = 0; c < 4; ++c) {
    upper[c] = rows[0][c] + rows[1][c];
    lower[c] = rows[2][c] + rows[3][c];
  }
  const auto shared_out = [](ColumnPair c, const Line& a, const Line& b, uint32_t unit_a,
                             uint32_t unit_b) {
    return larger({a[c.first] + b[c.second], unit_a << c.first | unit_b << c.second},
                  {a[c.second] + b[c.first], unit_a << c.second | unit_b << c.first});
  };
  using Pairs = std::array<Candidate, 6>;
  Pairs of_upper, of_lower, halves;
  for (size_t i = 0; i < 6; ++i) {
    const ColumnPair c = kColumnPairs[i];
    of_upper[i] = shared_out(c, rows[0], rows[1], kRowUnits[0], kRowUnits[1]);
    of_lower[i] = shared_out(c, rows[2], rows[3], kRowUnits[2], kRowUnits[3]);
    halves[i] =
        shared_out(c, upper, lower, kRowUnits[0] | kRowUnits[1], kRowUnits[2] | kRowUnits[3]);
  }
  Candidate best = larger(both(halves[1], halves[4]), both(halves[0], halves[5]));
  for (size_t i = 0; i < 6; ++i) {
    best = larger(best, both(both(of_upper[i], of_lower[i]), halves[5 - i]));
  }
  const auto one_of_each = [](const Pairs& of) {
    return larger(both(of[1], of[4]), both(of[0], of[5]));
  };
  return larger(best, both(one_of_each(of_upper), one_of_each(of_lower))).bits;
}

struct TileRange {
  int64_t begin = 0, end = 0;
};

/// The bits of some of the tiles that lie side by side, to four rows of bits, `bytes` apart: two
/// tiles make a byte.
inline void select_tiles(const float* w, int64_t stride, const TileRange& tiles, uint8_t* bits,
                         int64_t bytes) {
  for (int64_t at = tiles.begin; at < tiles.end; ++at) {
    const uint32_t tile = select_tile(w + 4 * at, stride);
    for (int64_t r = 0; r < 4; ++r) {
      const uint32_t mine = tile >> (4 * r) & 15;
      uint8_t& byte = bits[r * bytes + at / 2];
      byte = static_cast<uint8_t>(at % 2 == 0 ? mine : byte | mine << 4);
    }
  }
}

}  // namespace lacuna::reference
