#include "lacuna/sparsity/masks/largest_part.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "lacuna/framework/core/bit_words.h"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/framework/kernels/select/block_scores.hpp"
#include "lacuna/framework/kernels/select/kth_largest.hpp"

namespace lacuna {
namespace {

using Words = std::vector<uint64_t>;
constexpr int64_t kWord = 64;

size_t words_of(int64_t bits) { return static_cast<size_t>((bits + kWord - 1) / kWord); }

// `bits` = `count` bits from bit `first` of the mask on; zeros behind them.
void get_bits(const BitMask& mask, int64_t first, int64_t count, Words& bits) {
  std::ranges::fill(bits, 0);
  for (size_t i = 0; i < words_of(count); ++i) {
    bits[i] = bits_from(mask.words(), first + static_cast<int64_t>(i) * kWord);
  }
  if (count % kWord != 0) bits[words_of(count) - 1] &= (uint64_t{1} << (count % kWord)) - 1;
}

// Each of 32 bits twice.
uint64_t doubled(uint32_t bits) {
  uint64_t x = bits;
  x = (x | x << 16) & 0x0000ffff0000ffffu;
  x = (x | x << 8) & 0x00ff00ff00ff00ffu;
  x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
  x = (x | x << 2) & 0x3333333333333333u;
  x = (x | x << 1) & 0x5555555555555555u;
  return x | x << 1;
}

// In place, each of the first `count` bits `width` times. The others are zero before.
void widen(int64_t count, int64_t width, Words& bits) {
  for (; width % 2 == 0; width /= 2, count *= 2) {
    for (size_t w = words_of(count); w-- > 0;) {
      const uint64_t word = bits[w];
      bits[2 * w] = doubled(static_cast<uint32_t>(word));
      // Behind the last word there may be none: then it has no upper half.
      if (2 * w + 1 < bits.size()) bits[2 * w + 1] = doubled(static_cast<uint32_t>(word >> 32));
    }
  }
  if (width == 1) return;
  for (int64_t i = count; i-- > 0;) {  // from the end: what is read is not yet written
    const bool is_set = (bits[static_cast<size_t>(i / kWord)] >> (i % kWord) & 1) != 0;
    for (int64_t c = i * width; c < (i + 1) * width; ++c) {
      uint64_t& word = bits[static_cast<size_t>(c / kWord)];
      const uint64_t bit = uint64_t{1} << (c % kWord);
      word = is_set ? word | bit : word & ~bit;
    }
  }
}

// The positions of units: each unit's bit for all of its rows and columns.
BitMask positions_of(const BitMask& units, const PatternShape& s, int64_t rows, int64_t columns) {
  const int64_t height = s.unit_rows(), width = s.unit_columns(), across = columns / width;
  Words bits(words_of(rows * columns)), row(words_of(columns));
  for (int64_t u = 0; u < rows / height; ++u) {
    get_bits(units, u * across, across, row);
    widen(across, width, row);
    for (int64_t r = u * height; r < (u + 1) * height; ++r)
      put_bits(row.data(), columns, r * columns, bits.data());
  }
  return BitMask::from_words(rows * columns, std::move(bits));
}

// Of rows of `a` × `b` things, rows of `b` × `a`.
template <class T>
std::vector<T> swapped(std::span<const T> values, int64_t a, int64_t b) {
  std::vector<T> into(values.size());
  const auto row = static_cast<size_t>(a * b), down = static_cast<size_t>(a),
             across = static_cast<size_t>(b);
  for (size_t first = 0; first < values.size(); first += row) {
    for (size_t i = 0; i < down; ++i) {
      for (size_t j = 0; j < across; ++j) {
        into[first + j * down + i] = values[first + i * across + j];
      }
    }
  }
  return into;
}

BitMask swapped(const BitMask& mask, int64_t a, int64_t b) {
  BitMask into = BitMask::zeros(mask.size());
  mask.for_each([&](int64_t i) {
    const int64_t in_row = i % (a * b);
    into.set(i - in_row + in_row % b * a + in_row / b);
  });
  return into;
}

// The largest units; of equal ones those whose first position in the weight comes first. Scores are
// by rows of [taps, units of channels].
BitMask largest_units(std::span<const float> scores, int64_t count, int64_t taps, int64_t across) {
  if (taps == 1) return largest_mask(scores, count);
  return swapped(largest_mask(swapped(scores, taps, across), count), across, taps);
}

// The same of a matrix, or of one whose columns are [taps, channels].
BitMask largest_of_matrix(const PatternShape& s, std::span<const float> weights, int64_t rows,
                          int64_t columns, int64_t taps, int64_t count) {
  if (s.is_transposable()) return transposable_select(rows, columns, weights);
  if (s.unit_size() == 1 && s.is_nm()) {
    return nm_select({.rows = rows, .columns = columns, .pattern = s}, weights);
  }
  const int64_t down = rows / s.unit_rows(), across = columns / s.unit_columns();
  std::vector<float> scores(static_cast<size_t>(down * across));
  block_scores(s, weights.data(), rows, columns, scores.data());
  const BitMask units =
      s.is_nm()
          ? nm_select({.rows = down, .columns = across, .pattern = PatternShape::nm(s.n(), s.m())},
                      scores)
          : largest_units(scores, count / s.unit_size(), taps, across / taps);
  return positions_of(units, s, rows, columns);
}

}  // namespace

BitMask largest_part(const PatternShape& s, const Tensor& matrix, int64_t count) {
  const int64_t rows = matrix_rows(matrix.shape()), columns = matrix_columns(matrix.shape());
  const int64_t taps = matrix_taps(matrix.shape());
  if (taps == 1) return largest_of_matrix(s, matrix.storage(), rows, columns, 1, count);
  // Channels that a unit or a cell holds lie side by side in each tap's part of a row. No cell has
  // to do with another, and in each the order is the same, so that ties are.
  const int64_t channels = columns / taps;
  const std::vector<float> by_taps = swapped(matrix.storage(), channels, taps);
  return swapped(largest_of_matrix(s, by_taps, rows, columns, taps, count), taps, channels);
}

}  // namespace lacuna
