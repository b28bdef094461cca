#include "lacuna/sparsity/masks/largest_part.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "lacuna/framework/core/bit_words.h"
#include "lacuna/framework/kernels/nm/nm_selection.h"
#include "lacuna/framework/kernels/select/block_scores.h"
#include "lacuna/framework/kernels/select/kth_largest.h"

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

}  // namespace

BitMask largest_part(const PatternShape& s, const Tensor& matrix, int64_t count) {
  const int64_t rows = matrix_rows(matrix.shape()), columns = matrix_columns(matrix.shape());
  if (s.is_transposable()) {
    return transposable_select(rows, columns, matrix.storage(), s.search());
  }
  if (s.unit_size() == 1 && s.is_nm()) {
    return nm_select({.rows = rows, .columns = columns, .pattern = s}, matrix.storage());
  }
  const int64_t down = rows / s.unit_rows(), across = columns / s.unit_columns();
  std::vector<float> scores(static_cast<size_t>(down * across));
  block_scores(s, matrix.data(), rows, columns, scores.data());
  const BitMask units =
      s.is_nm()
          ? nm_select({.rows = down, .columns = across, .pattern = PatternShape::nm(s.n(), s.m())},
                      scores)
          : largest_mask(scores, count / s.unit_size());
  return positions_of(units, s, rows, columns);
}

}  // namespace lacuna
