// The groups of four weights that int8 products are made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna::internal {

/// Words of four weights, row by row. `quad` is the number of a word's four inputs.
struct Int8Groups {
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> quad;
  std::vector<int32_t> word;
};

/// Of a matrix: quads are four neighbouring columns.
Int8Groups int8_groups(int64_t rows, std::span<const int64_t> row_begin,
                       std::span<const uint32_t> column_of, std::span<const int8_t> values);

/// Of a convolution, whose columns are channel · taps + tap: quads are four channels at one tap,
/// numbered (channel / 4) · taps + tap. *Requires* channels that are a multiple of four.
Int8Groups int8_tap_groups(int64_t rows, int64_t taps, std::span<const int64_t> row_begin,
                           std::span<const uint32_t> column_of, std::span<const int8_t> values);

/// Whether the sums of a word's two pairs, each with bytes, fit 16 bits.
bool int8_word_fits_pairs(int32_t word);

/// Groups whose pairs fit 16 bits; some are split into two for this (Int8Kernels::splits_words).
Int8Groups split_int8_groups(const Int8Groups& groups);

/// Σ w of each row. *Errors:* ShapeError if a partial sum of Σ w q could exceed 32 bits.
std::vector<int32_t> int8_row_sums(int64_t rows, std::span<const int64_t> row_begin,
                                   std::span<const int8_t> values);

}  // namespace lacuna::internal
