// Selecting in tiles of 4 × 4, many at a time: a lane for each tile. See nm_selection.h.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/nm_selection.h"
#include "lacuna/framework/kernels/nm_selection_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/transposable_selection.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/groups_of_four.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// Tiles side by side in four rows: writes 16 bits for each, four of each row. Returns how many were
// done: as many as fill whole vectors.
#if HWY_TARGET == HWY_SCALAR
int64_t select_greedy(const float*, int64_t, int64_t, uint16_t*) { return 0; }
int64_t select_exact(const float*, int64_t, int64_t, uint16_t*) { return 0; }
#else

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Vector = hn::Vec<Floats>;
using Integers = hn::Vec<Ints>;
constexpr auto kTiles = static_cast<int64_t>(hn::MaxLanes(Floats()));

// Elements of each tile, row by row, in load_fours' order.
HWY_INLINE void load_tiles(const float* w, int64_t stride, Vector (&elements)[16]) {
  for (int r = 0; r < 4; ++r) load_fours(Floats(), w + r * stride, elements + 4 * r);
}

HWY_INLINE void store_bits(Integers bits, uint16_t* to) {
  const hn::RebindToUnsigned<Ints> u;
  const hn::Rebind<uint16_t, Ints> words;
  hn::StoreU(hn::TruncateTo(words, hn::BitCast(u, in_order(Ints(), bits))), words, to);
}

// One more weight of each tile: the largest of those that are open.
HWY_INLINE void take_largest(const Integers (&keys)[16], Integers& open, Integers& kept) {
  const Ints k;
  const auto closed = hn::Set(k, -2);
  auto best = closed, bit = hn::Zero(k);
  for (int i = 0; i < 16; ++i) {
    const auto mine = hn::Set(k, 1 << i);
    const auto key = hn::IfThenElse(hn::TestBit(open, mine), keys[i], closed);
    bit = hn::IfThenElse(hn::Gt(key, best), mine, bit);
    best = hn::Max(key, best);
  }
  // All bits of the row, and of the column, that has the bit.
  auto row = hn::Zero(k), column = hn::Zero(k);
  for (int i = 0; i < 4; ++i) {
    const auto of_row = hn::Set(k, 0xf << (4 * i)), of_column = hn::Set(k, 0x1111 << i);
    const auto none = hn::Zero(k);
    row = hn::Or(row, hn::IfThenElseZero(hn::Ne(hn::And(bit, of_row), none), of_row));
    column = hn::Or(column, hn::IfThenElseZero(hn::Ne(hn::And(bit, of_column), none), of_column));
  }
  const auto closed_by = [&](Integers line) HWY_ATTR {  // a line that had one before has two now
    return hn::IfThenElseZero(hn::Ne(hn::And(kept, line), hn::Zero(k)), line);
  };
  open = hn::AndNot(hn::Or(bit, hn::Or(closed_by(row), closed_by(column))), open);
  kept = hn::Or(kept, bit);
}

// kBatches vectors of tiles side by side: one waits for itself, two fill each other's gaps.
template <int kBatches>
HWY_INLINE void select_greedily(const float* w, int64_t stride, uint16_t* bits) {
  const Ints k;
  Integers keys[kBatches][16], open[kBatches], kept[kBatches];
  for (int b = 0; b < kBatches; ++b) {
    Vector elements[16];
    load_tiles(w + 4 * kTiles * b, stride, elements);
    for (int i = 0; i < 16; ++i) keys[b][i] = keys_of(Floats(), elements[i]);
    open[b] = hn::Set(k, 0xffff);
    kept[b] = hn::Zero(k);
  }
  for (int i = 0; i < 8; ++i) {
    for (int b = 0; b < kBatches; ++b) take_largest(keys[b], open[b], kept[b]);
  }
  for (int b = 0; b < kBatches; ++b) store_bits(kept[b], bits + kTiles * b);
}

int64_t select_greedy(const float* w, int64_t stride, int64_t tiles, uint16_t* bits) {
  int64_t at = 0;
  for (; at + 2 * kTiles <= tiles; at += 2 * kTiles) {
    select_greedily<2>(w + 4 * at, stride, bits + at);
  }
  for (; at + kTiles <= tiles; at += kTiles) select_greedily<1>(w + 4 * at, stride, bits + at);
  return at;
}

// A sum, and the bits that it belongs to.
struct Candidate {
  Vector sum;
  Integers bits;
};

HWY_INLINE void take_larger(Candidate& best, const Candidate& other) {
  const auto is_larger = hn::Gt(other.sum, best.sum);
  best.bits = hn::IfThenElse(hn::RebindMask(Ints(), is_larger), other.bits, best.bits);
  best.sum = hn::Max(other.sum, best.sum);
}

// The best half of a class: member `i` and those after it. Unrolled when compiling, so that sums
// are found at known places.
template <size_t c, bool kUpper, size_t i = 0>
HWY_INLINE Candidate best_half(const Vector (&first)[6], const Vector (&second)[6]) {
  constexpr const PatternClass& in = kClasses[c];
  constexpr HalfPattern half = kUpper ? in.upper[i] : in.lower[i];
  constexpr auto bits = static_cast<int32_t>(half_bits(half) << (kUpper ? 0 : 8));
  Candidate best{hn::Add(first[half.first], second[half.second]), hn::Set(Ints(), bits)};
  if constexpr (i + 1 < static_cast<size_t>(kUpper ? in.uppers : in.lowers)) {
    take_larger(best, best_half<c, kUpper, i + 1>(first, second));
  }
  return best;
}

// The best pattern of class `c` and those after it.
template <size_t c = 0>
HWY_INLINE Candidate best_pattern(const Vector (&pairs)[4][6]) {
  const Candidate upper = best_half<c, true>(pairs[0], pairs[1]);
  const Candidate lower = best_half<c, false>(pairs[2], pairs[3]);
  Candidate best{hn::Add(upper.sum, lower.sum), hn::Or(upper.bits, lower.bits)};
  if constexpr (c + 1 < kPatternClasses) take_larger(best, best_pattern<c + 1>(pairs));
  return best;
}

// Sums of two |w| of a row, by pair of columns.
HWY_INLINE void sum_pairs(const Vector* row, Vector (&pairs)[6]) {
  Vector a[4];
  for (int c = 0; c < 4; ++c) a[c] = hn::IfThenZeroElse(hn::IsNaN(row[c]), hn::Abs(row[c]));
  pairs[0] = hn::Add(a[0], a[1]);
  pairs[1] = hn::Add(a[0], a[2]);
  pairs[2] = hn::Add(a[0], a[3]);
  pairs[3] = hn::Add(a[1], a[2]);
  pairs[4] = hn::Add(a[1], a[3]);
  pairs[5] = hn::Add(a[2], a[3]);
}

int64_t select_exact(const float* w, int64_t stride, int64_t tiles, uint16_t* bits) {
  int64_t at = 0;
  for (; at + kTiles <= tiles; at += kTiles) {
    Vector elements[16], pairs[4][6];
    load_tiles(w + 4 * at, stride, elements);
    for (int r = 0; r < 4; ++r) sum_pairs(elements + 4 * r, pairs[r]);
    store_bits(best_pattern(pairs).bits, bits + at);
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

HWY_EXPORT(select_greedy);
HWY_EXPORT(select_exact);

constexpr int64_t kFour = 4;

void require_tiles(int64_t rows, int64_t columns, std::span<const float> weights) {
  if (rows % kFour == 0 && columns % kFour == 0 &&
      static_cast<int64_t>(weights.size()) == rows * columns) {
    return;
  }
  throw ShapeError("a transposable selection of " + std::to_string(rows) + " rows of " +
                   std::to_string(columns) + " was given " + std::to_string(weights.size()) +
                   " weights: rows and columns must be divisible by 4");
}

// Row `row` of each tile, four bits each, from bit `first` of the words on. Other bits stay.
void put_row(std::span<const uint16_t> tiles, int64_t row, int64_t first, uint64_t* words) {
  uint64_t* word = words + first / 64;
  int64_t filled = first % 64;
  uint64_t bits = 0;
  for (const uint16_t tile : tiles) {
    bits |= static_cast<uint64_t>(tile >> (4 * row) & 15) << filled;
    filled += kFour;
    if (filled < 64) continue;
    *word++ |= bits;
    bits = 0;
    filled = 0;
  }
  if (filled > 0) *word |= bits;
}

}  // namespace

BitMask transposable_select(int64_t rows, int64_t columns, std::span<const float> weights,
                            TransposableSelection selection) {
  require_tiles(rows, columns, weights);
  const bool is_greedy = selection == TransposableSelection::Greedy;
  const auto run =
      is_greedy ? HWY_DYNAMIC_DISPATCH(select_greedy) : HWY_DYNAMIC_DISPATCH(select_exact);
  const auto plain = is_greedy ? reference::select_greedily : reference::select_exactly;
  const auto size = static_cast<int64_t>(weights.size());
  std::vector<uint64_t> words(static_cast<size_t>((size + 63) / 64));
  constexpr int64_t kRows = 16;  // of a multiple of four columns: whole words
  parallel_for(rows, kRows, [&](int64_t begin, int64_t end) {
    std::vector<uint16_t> bits(static_cast<size_t>(columns / kFour));
    const auto tiles = static_cast<int64_t>(bits.size());
    for (int64_t row = begin; row < end; row += kFour) {
      const float* w = weights.data() + row * columns;
      int64_t at = use_reference_kernels() ? 0 : run(w, columns, tiles, bits.data());
      for (; at < tiles; ++at) {
        bits[static_cast<size_t>(at)] = static_cast<uint16_t>(plain(w + kFour * at, columns));
      }
      for (int64_t r = 0; r < kFour; ++r) put_row(bits, r, (row + r) * columns, words.data());
    }
  });
  return BitMask::from_words(size, std::move(words));
}

}  // namespace lacuna
#endif  // HWY_ONCE
