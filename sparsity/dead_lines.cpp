#include "lacuna/sparsity/dead_lines.h"

#include <span>
#include <vector>

namespace lacuna {
namespace {

// The 64 bits from bit `first` on; those past the end are zero.
uint64_t bits_from(std::span<const uint64_t> words, int64_t first) {
  const auto word = static_cast<size_t>(first / 64);
  const int64_t shift = first % 64;
  uint64_t bits = words[word] >> shift;
  if (shift != 0 && word + 1 < words.size()) bits |= words[word + 1] << (64 - shift);
  return bits;
}

// std::popcount is a call where the processor is not known to have an instruction for it.
int64_t count_ones(uint64_t word) {
  word -= word >> 1 & 0x5555555555555555u;
  word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return static_cast<int64_t>(word * 0x0101010101010101u >> 56);
}

}  // namespace

DeadLines dead_lines(const Positions& positions) {
  std::vector<char> alive(static_cast<size_t>(positions.columns()));
  DeadLines dead{.columns = positions.columns()};
  // Mostly few rows use all columns.
  for (int64_t r = 0; r < positions.rows() && dead.columns > 0; ++r) {
    for (const uint32_t column : positions.row(r)) {
      dead.columns -= alive[column] == 0 ? 1 : 0;
      alive[column] = 1;
    }
  }
  for (int64_t r = 0; r < positions.rows(); ++r) dead.rows += positions.row(r).empty() ? 1 : 0;
  return dead;
}

DeadLines dead_lines(const BitMask& mask, const Shape& shape) {
  const int64_t rows = matrix_rows(shape), columns = matrix_columns(shape);
  DeadLines dead;
  const std::span<const uint64_t> words = mask.words();
  std::vector<uint64_t> alive(static_cast<size_t>((columns + 63) / 64));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row * columns;
    uint64_t any = 0;
    for (int64_t at = 0; at < columns; at += 64) {
      uint64_t bits = bits_from(words, first + at);
      if (columns - at < 64) bits &= (uint64_t{1} << (columns - at)) - 1;
      alive[static_cast<size_t>(at / 64)] |= bits;
      any |= bits;
    }
    dead.rows += any == 0 ? 1 : 0;
  }
  dead.columns = columns;
  for (const uint64_t word : alive) dead.columns -= count_ones(word);
  return dead;
}

int64_t count_common(const BitMask& a, const BitMask& b) {
  int64_t common = 0;
  for (size_t w = 0; w < a.words().size(); ++w) common += count_ones(a.words()[w] & b.words()[w]);
  return common;
}

}  // namespace lacuna
