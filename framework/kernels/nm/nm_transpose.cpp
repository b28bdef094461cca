// A tile of 4 × 4 has its eight values in four rows of either matrix, two values per row. They are
// loaded into one vector, permuted, and stored as four pairs. A tile takes a few cycles and half a
// byte of index per value; a gather would read four bytes.
#include "lacuna/framework/kernels/nm/nm_transpose.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_transpose.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Consecutive tiles: in the original from[row · from_stride + 2 · tile], in the transpose into[(4 ·
// tile + row) · into_stride].
void transpose_tiles(const float* from, int64_t from_stride, const uint32_t* places, int64_t tiles,
                     float* into, int64_t into_stride) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const hn::FixedTag<float, 8> d;
  const hn::RebindToUnsigned<decltype(d)> u;
  const hn::FixedTag<float, 4> quad;
  const hn::FixedTag<float, 2> pair;
  const auto shifts = hn::Mul(hn::Iota(u, 0), hn::Set(u, 4));
  const auto two_rows = [&](const float* at) HWY_ATTR {
    return hn::Combine(quad, hn::LoadU(pair, at + from_stride), hn::LoadU(pair, at));
  };
  for (int64_t tile = 0; tile < tiles; ++tile, from += 2, into += 4 * into_stride) {
    const auto values = hn::Combine(d, two_rows(from + 2 * from_stride), two_rows(from));
    const auto indices = hn::And(hn::Shr(hn::Set(u, places[tile]), shifts), hn::Set(u, 7));
    const auto moved = hn::TableLookupLanes(values, hn::IndicesFromVec(d, indices));
    const auto low = hn::LowerHalf(quad, moved), high = hn::UpperHalf(quad, moved);
    hn::StoreU(hn::LowerHalf(pair, low), pair, into);
    hn::StoreU(hn::UpperHalf(pair, low), pair, into + into_stride);
    hn::StoreU(hn::LowerHalf(pair, high), pair, into + 2 * into_stride);
    hn::StoreU(hn::UpperHalf(pair, high), pair, into + 3 * into_stride);
  }
#else
  for (int64_t tile = 0; tile < tiles; ++tile, from += 2, into += 4 * into_stride) {
    for (int64_t slot = 0; slot < 8; ++slot) {
      const int64_t place = places[tile] >> (4 * slot) & 7;
      into[slot / 2 * into_stride + slot % 2] = from[place / 2 * from_stride + place % 2];
    }
  }
#endif
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(transpose_tiles);

constexpr int64_t kFour = 4;

// Calls `visit(tile of the original, tile of the transpose, first row, first entry of places)` for
// each four rows, from row `begin` on, and each tile of the original.
template <class Visit>
void for_each_strip(const NmMatrixForm& form, const NmMatrixForm& transposed, int64_t begin,
                    int64_t end, const Visit& visit) {
  const int64_t width = transposed.tile_columns();
  for (int64_t row = begin; row < end; row += kFour) {
    const NmTile across = transposed.tile(row / width);
    for (int64_t t = 0; t < form.tiles(); ++t) {
      const NmTile tile = form.tile(t);
      visit(tile, across, row, row / kFour * (form.columns / kFour) + tile.first_column / kFour);
    }
  }
}

// The eight slots of a tile of 4 × 4, sorted by column: places, codes, and which are unused.
struct TransposedTile {
  uint32_t places = 0;
  uint8_t codes[4] = {};  // four bits for each row of the transpose
  uint8_t unused = 0;     // one bit per slot
};

// `codes`: four bits per row; `unused`: one bit per slot of the original.
TransposedTile transpose_tile(const uint32_t (&codes)[4], uint32_t unused) {
  TransposedTile tile;
  uint32_t count[4] = {};
  for (uint32_t slot = 0; slot < 8; ++slot) {
    if ((unused >> slot & 1) != 0) continue;
    const uint32_t row = slot / 2, column = codes[row] >> (2 * (slot % 2)) & 3;
    const uint32_t place = count[column]++;
    tile.places |= slot << (4 * (2 * column + place));
    tile.codes[column] = static_cast<uint8_t>(tile.codes[column] | row << (2 * place));
  }
  if (unused == 0) return tile;
  const auto empty = static_cast<uint32_t>(std::countr_zero(unused));
  for (uint32_t column = 0; column < 4; ++column) {
    for (uint32_t place = count[column]; place < 2; ++place) {
      tile.places |= empty << (4 * (2 * column + place));
      tile.unused = static_cast<uint8_t>(tile.unused | 1u << (2 * column + place));
    }
  }
  return tile;
}

// The transposed tiles of all patterns without unused slots, indexed by the codes of four rows:
// each row has one of six pairs of columns.
class TileTable {
 public:
  TileTable() {
    std::array<uint32_t, 6> pairs = {};  // codes of the pairs 01, 02, 12, 03, 13, 23
    uint32_t count = 0;
    for (uint32_t second = 1; second < 4; ++second) {
      for (uint32_t first = 0; first < second; ++first) pairs[count++] = first | second << 2;
    }
    for (uint32_t upper = 0; upper < 256; ++upper) two_rows_[upper] = 0;
    for (uint32_t a = 0; a < 6; ++a) {
      for (uint32_t b = 0; b < 6; ++b) {
        two_rows_[pairs[a] | pairs[b] << 4] = static_cast<uint8_t>(6 * a + b);
      }
    }
    for (uint32_t tile = 0; tile < 36 * 36; ++tile) {
      const uint32_t codes[4] = {pairs[tile / 216], pairs[tile / 36 % 6], pairs[tile / 6 % 6],
                                 pairs[tile % 6]};
      uint32_t columns[4] = {};
      for (const uint32_t row : codes) ++columns[row & 3], ++columns[row >> 2];
      const bool is_2_4 = std::ranges::all_of(columns, [](uint32_t n) { return n == 2; });
      if (is_2_4) tiles_[tile] = transpose_tile(codes, 0);
    }
  }

  /// The index is two bytes, each with the codes of two rows.
  const TransposedTile& operator()(uint32_t upper, uint32_t lower) const {
    return tiles_[36u * two_rows_[upper] + two_rows_[lower]];
  }

 private:
  std::array<uint8_t, 256> two_rows_;
  std::array<TransposedTile, 36 * 36> tiles_;
};

// Eight rows fill whole bytes of the transpose's codes. *Requires* that no slot is unused.
void transpose_full(const NmMatrix& matrix, NmTranspose& result) {
  static const TileTable table;
  const NmMatrixForm& form = matrix.form;
  const NmMatrixForm& turned = result.matrix.form;
  constexpr int64_t kRows = 128;
  parallel_for(form.rows, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += 2 * kFour) {
      const bool has_lower = row + kFour < form.rows;
      const int64_t place = row / kFour * (form.columns / kFour);
      const NmTile across = turned.tile(row / turned.tile_columns());
      uint8_t* into =
          result.matrix.codes.data() + across.first_code + (row - across.first_column) / 8;
      for (int64_t t = 0; t < form.tiles(); ++t) {
        const NmTile tile = form.tile(t);
        const uint8_t* codes = matrix.codes.data() + tile.first_code + row * tile.code_bytes;
        uint32_t* upper_places = result.places.data() + place + tile.first_column / kFour;
        uint32_t* lower_places = upper_places + form.columns / kFour;
        const auto tile_of = [&](int64_t g, int64_t rows_below) {
          const uint8_t* at = codes + rows_below * tile.code_bytes + g / 2;
          const int64_t shift = g % 2 * 4;
          const auto four_bits = [&](int64_t i) {
            return static_cast<uint32_t>(at[i * tile.code_bytes] >> shift & 15);
          };
          return table(four_bits(0) | four_bits(1) << 4, four_bits(2) | four_bits(3) << 4);
        };
        uint8_t* to = into + tile.first_column * across.code_bytes;
        for (int64_t g = 0; g < tile.columns / kFour; ++g) {
          const TransposedTile upper = tile_of(g, 0);
          upper_places[g] = upper.places;
          TransposedTile lower;
          if (has_lower) {
            lower = tile_of(g, kFour);
            lower_places[g] = lower.places;
          }
          for (int64_t c = 0; c < kFour; ++c, to += across.code_bytes) {
            *to = static_cast<uint8_t>(upper.codes[c] | lower.codes[c] << 4);
          }
        }
      }
    }
  });
}

// Transposes any pattern, tile by tile.
void transpose_partial(const NmMatrix& matrix, NmTranspose& result) {
  const NmMatrixForm& form = matrix.form;
  const NmMatrixForm& turned = result.matrix.form;
  BitMask unused = BitMask::zeros(matrix.unused.empty() ? 0 : form.stored());
  for (const uint32_t slot : matrix.unused) unused.set(slot);
  for_each_strip(
      form, turned, 0, form.rows,
      [&](const NmTile& tile, const NmTile& across, int64_t row, int64_t place) {
        const int64_t group = (row - across.first_column) / kFour;  // in rows of the transpose
        for (int64_t g = 0; g < tile.columns / kFour; ++g) {
          uint32_t codes[4], bits = 0;
          for (int64_t i = 0; i < kFour; ++i) {
            const uint8_t byte = matrix.codes[static_cast<size_t>(
                tile.first_code + (row + i) * tile.code_bytes + g / 2)];
            codes[i] = byte >> (g % 2 * 4) & 15u;
            const int64_t slot = tile.first_slot + (row + i) * tile.slots + 2 * g;
            for (int64_t k = 0; k < 2 && unused.size() > 0; ++k) {
              if (unused.test(slot + k)) bits |= 1u << (2 * i + k);
            }
          }
          const TransposedTile turned_tile = transpose_tile(codes, bits);
          result.places[static_cast<size_t>(place + g)] = turned_tile.places;
          for (int64_t c = 0; c < kFour; ++c) {
            const int64_t to = tile.first_column + kFour * g + c;
            uint8_t& byte = result.matrix.codes[static_cast<size_t>(
                across.first_code + to * across.code_bytes + group / 2)];
            byte = static_cast<uint8_t>(byte | turned_tile.codes[c] << (group % 2 * 4));
            for (int64_t k = 0; k < 2 && turned_tile.unused != 0; ++k) {
              if ((turned_tile.unused >> (2 * c + k) & 1) == 0) continue;
              result.matrix.unused.push_back(
                  static_cast<uint32_t>(across.first_slot + to * across.slots + 2 * group + k));
            }
          }
        }
      });
  std::ranges::sort(result.matrix.unused);
}

}  // namespace

NmTranspose nm_transpose(const NmMatrix& matrix) {
  const NmMatrixForm& form = matrix.form;
  NmTranspose result;
  NmMatrixForm& turned = result.matrix.form;
  turned = {.rows = form.columns, .columns = form.rows, .pattern = form.pattern};
  result.matrix.codes.resize(static_cast<size_t>(turned.code_bytes()) + 8);
  result.places.resize(static_cast<size_t>(form.rows * form.columns / 16));
  matrix.unused.empty() ? transpose_full(matrix, result) : transpose_partial(matrix, result);
  return result;
}

void nm_transpose_values(const NmMatrix& matrix, const NmTranspose& transpose, const float* values,
                         float* into) {
  const auto run = HWY_DYNAMIC_DISPATCH(transpose_tiles);
  const NmMatrixForm& form = matrix.form;
  constexpr int64_t kRows = 128;
  parallel_for(form.rows, kRows, [&](int64_t begin, int64_t end) {
    for_each_strip(form, transpose.matrix.form, begin, end,
                   [&](const NmTile& tile, const NmTile& across, int64_t row, int64_t place) {
                     run(values + tile.first_slot + row * tile.slots, tile.slots,
                         transpose.places.data() + place, tile.columns / kFour,
                         into + across.first_slot + tile.first_column * across.slots +
                             (row - across.first_column) / kFour * 2,
                         across.slots);
                   });
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
