#include "lacuna/sparsity/largest_part.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "lacuna/framework/kernels/block_scores.h"
#include "lacuna/framework/kernels/nm_selection.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {
namespace {

constexpr int64_t kWord = 64;

// Sets `count` bits from bit `first` on to those of `row`.
void put_bits(std::vector<uint64_t>& bits, int64_t first, const std::vector<uint64_t>& row) {
  const auto word = static_cast<size_t>(first / kWord);
  const int shift = static_cast<int>(first % kWord);
  for (size_t i = 0; i < row.size(); ++i) {
    bits[word + i] |= row[i] << shift;
    if (shift > 0 && row[i] >> (kWord - shift) != 0) {
      bits[word + i + 1] |= row[i] >> (kWord - shift);
    }
  }
}

// The units of row `u`, of `across` in each, as bits of positions in a row.
void put_units(const BitMask& units, int64_t u, int64_t across, int64_t width,
               std::vector<uint64_t>& row) {
  if (width == 1 && across % kWord == 0) {
    std::copy_n(units.words().begin() + u * across / kWord, row.size(), row.begin());
    return;
  }
  std::ranges::fill(row, 0);
  if (across % kWord == 0 && kWord % width == 0) {  // a unit's bits are in one word
    const uint64_t ones = ~uint64_t{0} >> (kWord - width);
    for (int64_t w = 0; w < across / kWord; ++w) {
      for (uint64_t rest = units.words()[static_cast<size_t>(u * across / kWord + w)]; rest != 0;
           rest &= rest - 1) {
        const int64_t column = (w * kWord + std::countr_zero(rest)) * width;
        row[static_cast<size_t>(column / kWord)] |= ones << (column % kWord);
      }
    }
    return;
  }
  for (int64_t unit = 0; unit < across; ++unit) {
    if (!units.test(u * across + unit)) continue;
    for (int64_t c = unit * width; c < (unit + 1) * width; ++c) {
      row[static_cast<size_t>(c / kWord)] |= uint64_t{1} << (c % kWord);
    }
  }
}

// The positions of units: each unit's bit for all of its rows and columns.
BitMask positions_of(const BitMask& units, const Structure& s, int64_t rows, int64_t columns) {
  const int64_t height = s.unit_rows(), width = s.unit_columns(), across = columns / width;
  std::vector<uint64_t> bits(static_cast<size_t>((rows * columns + kWord - 1) / kWord));
  std::vector<uint64_t> row(static_cast<size_t>((columns + kWord - 1) / kWord));
  for (int64_t u = 0; u < rows / height; ++u) {
    put_units(units, u, across, width, row);
    for (int64_t r = u * height; r < (u + 1) * height; ++r) put_bits(bits, r * columns, row);
  }
  return BitMask::from_words(rows * columns, std::move(bits));
}

}  // namespace

BitMask largest_part(const Structure& s, const Tensor& matrix, int64_t count) {
  const int64_t rows = matrix_rows(matrix.shape()), columns = matrix_columns(matrix.shape());
  if (s.transposable) {
    return transposable_select(rows, columns, matrix.storage(),
                               s.search == Structure::Search::Greedy
                                   ? TransposableSelection::Greedy
                                   : TransposableSelection::Exact);
  }
  if (s.unit_size() == 1 && s.is_nm()) {
    return nm_select({.rows = rows, .columns = columns, .n = s.n, .m = s.m}, matrix.storage());
  }
  const int64_t down = rows / s.unit_rows(), across = columns / s.unit_columns();
  std::vector<float> scores(static_cast<size_t>(down * across));
  block_scores(s.norm == Structure::Norm::L2 ? TileNorm::L2 : TileNorm::L1,
               {.rows = s.unit_rows(), .columns = s.unit_columns()}, matrix.data(), rows, columns,
               scores.data());
  const BitMask units =
      s.is_nm() ? nm_select({.rows = down, .columns = across, .n = s.n, .m = s.m}, scores)
                : top_k(scores, count / s.unit_size());
  return positions_of(units, s, rows, columns);
}

}  // namespace lacuna
