// Selects in tiles of 4 × 4, one tile per lane: see nm_selection.hpp.
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/bit_words.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/framework/kernels/nm/nm_selection_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/transposable_selection.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/groups_of_four.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// Consecutive tiles in four rows of `stride` floats: writes their bits to four rows of `bytes`
// bytes. Returns the number of processed tiles, as many as fill whole vectors.
#if HWY_TARGET == HWY_SCALAR
int64_t select_tiles(const float*, int64_t, int64_t, uint8_t*, int64_t) { return 0; }
#else

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Vector = hn::Vec<Floats>;
using Integers = hn::Vec<Ints>;
constexpr auto kTiles = static_cast<int64_t>(hn::MaxLanes(Floats()));

// Four bits of each of four rows: two tiles fill a byte. The bits of rows are `stride` bytes apart.
HWY_INLINE void store_bits(Integers bits, uint8_t* to, int64_t stride) {
  const hn::Repartition<uint64_t, Ints> pairs;
  const hn::Rebind<uint8_t, decltype(pairs)> bytes;
  const hn::RebindToUnsigned<Ints> u;
  const auto tiles = hn::BitCast(u, in_order(Ints(), bits));
  const auto store = [&](auto of_row, int64_t row) HWY_ATTR {
    const auto pair = hn::BitCast(pairs, hn::And(of_row, hn::Set(u, 15)));
    hn::StoreU(hn::TruncateTo(bytes, hn::Or(pair, hn::ShiftRight<28>(pair))), bytes,
               to + row * stride);
  };
  store(tiles, 0);
  store(hn::ShiftRight<4>(tiles), 1);
  store(hn::ShiftRight<8>(tiles), 2);
  store(hn::ShiftRight<12>(tiles), 3);
}

// A sum, and the bits of its weights, as in reference::select_tile.
struct Candidate {
  Vector sum;
  Integers bits;
};

HWY_INLINE Candidate larger(const Candidate& a, const Candidate& b) {
  const auto is_larger = hn::Gt(b.sum, a.sum);
  return {hn::Max(b.sum, a.sum), hn::IfThenElse(hn::RebindMask(Ints(), is_larger), b.bits, a.bits)};
}

HWY_INLINE Candidate both(const Candidate& a, const Candidate& b) {
  return {hn::Add(a.sum, b.sum), hn::Or(a.bits, b.bits)};
}

// The columns of pair `i`, assigned to two arrays in either way.
template <size_t i>
HWY_INLINE Candidate shared_out(const Vector (&a)[4], const Vector (&b)[4], uint32_t unit_a,
                                uint32_t unit_b) {
  constexpr ColumnPair c = kColumnPairs[i];
  const auto bits = [&](uint32_t of_a, uint32_t of_b) HWY_ATTR {
    return hn::Set(Ints(), static_cast<int32_t>(unit_a << of_a | unit_b << of_b));
  };
  return larger({hn::Add(a[c.first], b[c.second]), bits(c.first, c.second)},
                {hn::Add(a[c.second], b[c.first]), bits(c.second, c.first)});
}

template <size_t... i>
HWY_INLINE Integers best_pattern(const Vector (&rows)[4][4], std::index_sequence<i...>) {
  Vector upper[4], lower[4];  // both weights of a column
  for (int c = 0; c < 4; ++c) {
    upper[c] = hn::Add(rows[0][c], rows[1][c]);
    lower[c] = hn::Add(rows[2][c], rows[3][c]);
  }
  const Candidate of_upper[] = {shared_out<i>(rows[0], rows[1], kRowUnits[0], kRowUnits[1])...};
  const Candidate of_lower[] = {shared_out<i>(rows[2], rows[3], kRowUnits[2], kRowUnits[3])...};
  const Candidate halves[] = {
      shared_out<i>(upper, lower, kRowUnits[0] | kRowUnits[1], kRowUnits[2] | kRowUnits[3])...};
  Candidate best = larger(both(halves[1], halves[4]), both(halves[0], halves[5]));
  ((best = larger(best, both(both(of_upper[i], of_lower[i]), halves[5 - i]))), ...);
  const auto one_of_each = [](const Candidate(&of)[6])
                               HWY_ATTR { return larger(both(of[1], of[4]), both(of[0], of[5])); };
  return larger(best, both(one_of_each(of_upper), one_of_each(of_lower))).bits;
}

HWY_INLINE Integers best_pattern(const Vector (&rows)[4][4]) {
  return best_pattern(rows, std::make_index_sequence<6>());
}

// The |w|; NaN is kept or becomes 0.
template <bool kKeepNaN>
HWY_INLINE void load_magnitudes(const float* w, int64_t stride, Vector (&rows)[4][4]) {
  for (int r = 0; r < 4; ++r) {
    load_fours(Floats(), w + r * stride, rows[r]);
    for (Vector& v : rows[r]) {
      v = hn::Abs(v);
      if constexpr (!kKeepNaN) v = hn::IfThenZeroElse(hn::IsNaN(v), v);
    }
  }
}

// A separate function, otherwise the compiler keeps the other function's weights in memory.
HWY_NOINLINE void select_among_nan(const float* w, int64_t stride, uint8_t* bits, int64_t bytes) {
  Vector rows[4][4];
  load_magnitudes<false>(w, stride, rows);
  store_bits(best_pattern(rows), bits, bytes);
}

int64_t select_tiles(const float* w, int64_t stride, int64_t tiles, uint8_t* bits, int64_t bytes) {
  int64_t at = 0;
  for (; at + kTiles <= tiles; at += kTiles) {
    prefetch_rows(w + 4 * stride + 4 * at, stride, 4 * kTiles);
    Vector rows[4][4];
    load_magnitudes<true>(w + 4 * at, stride, rows);
    Vector all = hn::Zero(Floats());  // NaN if there is one
    for (const auto& row : rows) {
      all = hn::Add(all, hn::Add(hn::Add(row[0], row[1]), hn::Add(row[2], row[3])));
    }
    store_bits(best_pattern(rows), bits + at / 2, bytes);
    if (!hn::AllFalse(Floats(), hn::IsNaN(all))) {
      select_among_nan(w + 4 * at, stride, bits + at / 2, bytes);
    }
  }
  return at;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(select_tiles);

constexpr int64_t kSide = 4;

void require_tiles(int64_t rows, int64_t columns, std::span<const float> weights) {
  if (rows % kSide == 0 && columns % kSide == 0 &&
      static_cast<int64_t>(weights.size()) == rows * columns) {
    return;
  }
  throw ShapeError(
      fmt::format("a transposable selection of {} rows of {} was given {} weights: rows and "
                  "columns must be divisible by 4",
                  rows, columns, weights.size()));
}

// The bits of consecutive tiles, written to four rows of bits.
void select_row(const float* weights, int64_t stride, int64_t tiles, uint8_t* bits, int64_t bytes) {
  const int64_t done = use_reference_kernels() ? 0
                                               : HWY_DYNAMIC_DISPATCH(select_tiles)(
                                                     weights, stride, tiles, bits, bytes);
  reference::select_tiles(weights, stride, {done, tiles}, bits, bytes);
}

}  // namespace

BitMask transposable_select(int64_t rows, int64_t columns, std::span<const float> weights) {
  require_tiles(rows, columns, weights);
  const auto size = static_cast<int64_t>(weights.size());
  std::vector<uint64_t> words(static_cast<size_t>((size + 63) / 64));
  constexpr int64_t kRows = 16;  // with a multiple of four columns: whole words
  parallel_for(rows, kRows, [&](int64_t begin, int64_t end) {
    const int64_t tiles = columns / kSide, row_words = (columns + 63) / 64;
    std::vector<uint64_t> bits(static_cast<size_t>(kSide * row_words));
    for (int64_t row = begin; row < end; row += kSide) {
      select_row(weights.data() + row * columns, columns, tiles,
                 reinterpret_cast<uint8_t*>(bits.data()), 8 * row_words);
      for (int64_t r = 0; r < kSide; ++r) {
        put_bits(bits.data() + r * row_words, columns, (row + r) * columns, words.data());
      }
    }
  });
  return BitMask::from_words(size, std::move(words));
}

}  // namespace lacuna
#endif  // HWY_ONCE
