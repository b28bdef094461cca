// Greedy selection without looking for a largest weight. A rival of a weight is one of its row or
// column in the tile, and beats it when it comes before it in the order that the selection takes
// them. A weight is kept exactly when fewer than two kept rivals of its row beat it, and fewer than
// two of its column. So with
//
//     F(S) = the weights that fewer than two of S beat in their row, and in their column,
//
// what is kept is the set K = F(K). F is antitone: with S = all, F(S) are weights that are kept in
// any case, F(F(S)) those that may still be, and so on; the largest undecided weight is decided in
// each round, and the rounds end where nothing changes.
//
// Who beats whom takes one comparison a pair, and becomes a bit; then a word of bits has 16 tiles.
#include "lacuna/framework/kernels/nm/transposable_greedy.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm_selection_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/transposable_greedy.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/groups_of_four.inc"

#ifndef LACUNA_TRANSPOSABLE_GREEDY
#define LACUNA_TRANSPOSABLE_GREEDY
namespace lacuna {
namespace {

constexpr int64_t kGroup = 128;              // tiles that are decided together
constexpr int64_t kGroupBytes = kGroup / 2;  // of a row's bits

// The pairs (upper, lower) of rows.
constexpr int kUpper[6] = {0, 0, 0, 1, 1, 2}, kLower[6] = {1, 2, 3, 2, 3, 3};

// A bit for each pair of weights of a line: whether the later one beats the earlier one.
struct alignas(64) Relations {
  uint8_t right[4][kGroupBytes];      // of row r: at columns 0, 1, 2 those of 2, 3, 3 with them
  uint8_t left[4][kGroupBytes];       // at columns 1, 2, 3 theirs with 0, 1, 0
  uint8_t of_column[6][kGroupBytes];  // of rows kUpper and kLower
};

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
bool select_greedy(const float*, int64_t, int64_t, uint8_t*, int64_t) { return false; }
#else

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Integers = hn::Vec<Ints>;
constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));
constexpr int64_t kStep = std::max<int64_t>(kLanes, 8);  // columns that make whole bytes
constexpr int64_t kVectors = kStep / kLanes;

using Words = hn::CappedTag<uint64_t, 8>;
using Bits = hn::Vec<Words>;
constexpr auto kWordBytes = static_cast<int64_t>(8 * hn::MaxLanes(Words()));

// The bytes' places when element i of each four is to be from[i].
constexpr std::array<uint8_t, 4 * kLanes> shuffle_of(const std::array<int, 4>& from) {
  std::array<uint8_t, 4 * kLanes> table = {};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<uint8_t>(4 * from[i / 4 % 4] + static_cast<int>(i % 4));
  }
  return table;
}
alignas(64) constexpr auto kLater = shuffle_of({2, 3, 3, 3}), kEarlier = shuffle_of({0, 0, 1, 0});

HWY_INLINE Integers shuffled(Integers v, const std::array<uint8_t, 4 * kLanes>& table) {
  const hn::Repartition<uint8_t, Ints> bytes;
  return hn::BitCast(Ints(),
                     hn::TableLookupBytes(hn::BitCast(bytes, v), hn::LoadU(bytes, table.data())));
}

// The bits of `a > b`, for kStep columns.
HWY_INLINE void store_greater(const Integers (&a)[kVectors], const Integers (&b)[kVectors],
                              uint8_t* to) {
  if constexpr (kVectors == 1) {
    hn::StoreMaskBits(Ints(), hn::Gt(a[0], b[0]), to);
  } else {
    uint8_t low[8], high[8];
    hn::StoreMaskBits(Ints(), hn::Gt(a[0], b[0]), low);
    hn::StoreMaskBits(Ints(), hn::Gt(a[1], b[1]), high);
    *to = static_cast<uint8_t>(low[0] | high[0] << 4);
  }
}

// Relations of kStep columns, to byte `at` of each row.
HWY_INLINE void relate(const float* w, int64_t stride, int64_t at, Relations& of) {
  Integers keys[4][kVectors];
  for (int r = 0; r < 4; ++r) {
    Integers later[kVectors], earlier[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) {
      keys[r][v] = keys_of(Floats(), hn::LoadU(Floats(), w + r * stride + v * kLanes));
      later[v] = shuffled(keys[r][v], kLater);
      earlier[v] = shuffled(keys[r][v], kEarlier);
    }
    store_greater(later, keys[r], of.right[r] + at);
    store_greater(keys[r], earlier, of.left[r] + at);
  }
  for (int i = 0; i < 6; ++i) {
    store_greater(keys[kLower[i]], keys[kUpper[i]], of.of_column[i] + at);
  }
}

// At least two of three.
HWY_INLINE Bits two_of(Bits a, Bits b, Bits c) { return hn::OrAnd(hn::And(a, b), c, hn::Or(a, b)); }

// Where the rivals of its row beat each weight of a row: the one 1, 2, 3 to the right, or left.
enum { kRight1, kRight2, kRight3, kLeft1, kLeft2, kLeft3, kRivals };

HWY_INLINE void row_relations(Bits right, Bits left, Bits (&of)[kRivals]) {
  const Words d;
  const auto at = [&](Bits bits, uint64_t columns)
                      HWY_ATTR { return hn::And(bits, hn::Set(d, columns * 0x1111111111111111u)); };
  const auto not_at = [&](Bits bits, uint64_t columns) HWY_ATTR {
    return hn::AndNot(bits, hn::Set(d, columns * 0x1111111111111111u));
  };
  of[kRight1] = hn::Or(at(hn::ShiftRight<1>(left), 0b0011), at(right, 0b0100));
  of[kRight2] = at(right, 0b0011);
  of[kRight3] = at(hn::ShiftRight<3>(left), 0b0001);
  of[kLeft1] = hn::Or(not_at(left, 0b0110), not_at(hn::ShiftLeft<1>(right), 0b1000));
  of[kLeft2] = not_at(hn::ShiftLeft<2>(right), 0b1100);
  of[kLeft3] = not_at(left, 0b1000);
}

// F(S) of the rows' bits.
HWY_INLINE void unbeaten(const Bits (&row)[4][kRivals], const Bits (&column)[6], const Bits (&s)[4],
                         Bits (&result)[4]) {
  const auto ones = hn::Set(Words(), ~uint64_t{0});
  const auto by_lower = [&](int i) HWY_ATTR { return hn::And(column[i], s[kLower[i]]); };
  const auto by_upper = [&](int i) HWY_ATTR { return hn::AndNot(column[i], s[kUpper[i]]); };
  const Bits in_column[] = {
      two_of(by_lower(0), by_lower(1), by_lower(2)), two_of(by_upper(0), by_lower(3), by_lower(4)),
      two_of(by_upper(1), by_upper(3), by_lower(5)), two_of(by_upper(2), by_upper(4), by_upper(5))};
  for (int r = 0; r < 4; ++r) {
    const Bits(&of)[kRivals] = row[r];
    const auto rivals = [&](auto right, auto left, Bits beats_right, Bits beats_left) HWY_ATTR {
      return hn::OrAnd(hn::And(right, beats_right), left, beats_left);
    };
    const auto in_row =
        two_of(rivals(hn::ShiftRight<1>(s[r]), hn::ShiftLeft<3>(s[r]), of[kRight1], of[kLeft3]),
               rivals(hn::ShiftRight<2>(s[r]), hn::ShiftLeft<2>(s[r]), of[kRight2], of[kLeft2]),
               rivals(hn::ShiftRight<3>(s[r]), hn::ShiftLeft<1>(s[r]), of[kRight3], of[kLeft1]));
    result[r] = hn::AndNot(hn::Or(in_row, in_column[r]), ones);
  }
}

// The kept weights of the tiles whose relations begin at byte `at`.
HWY_INLINE void decide(const Relations& relations, int64_t at, uint8_t (&kept)[4][kGroupBytes]) {
  const Words d;
  const auto load = [&](const uint8_t* bytes) HWY_ATTR {
    return hn::Load(d, reinterpret_cast<const uint64_t*>(bytes + at));
  };
  Bits row[4][kRivals], column[6], before[4], now[4];
  for (int r = 0; r < 4; ++r) {
    row_relations(load(relations.right[r]), load(relations.left[r]), row[r]);
    before[r] = hn::Set(d, ~uint64_t{0});
  }
  for (int i = 0; i < 6; ++i) column[i] = load(relations.of_column[i]);
  for (bool changed = true; changed;) {
    unbeaten(row, column, before, now);
    auto difference = hn::Zero(d);
    for (int r = 0; r < 4; ++r) {
      difference = hn::Or(difference, hn::Xor(before[r], now[r]));
      before[r] = now[r];
    }
    changed = !hn::AllTrue(d, hn::Eq(difference, hn::Zero(d)));
  }
  for (int r = 0; r < 4; ++r) hn::Store(now[r], d, reinterpret_cast<uint64_t*>(kept[r] + at));
}

bool select_greedy(const float* w, int64_t stride, int64_t tiles, uint8_t* bits, int64_t bytes) {
  Relations relations = {};
  alignas(64) uint8_t kept[4][kGroupBytes];
  for (int64_t first = 0; first < tiles; first += kGroup) {
    const float* group = w + 4 * first;
    const int64_t columns = 4 * std::min(kGroup, tiles - first);
    int64_t c = 0;
    for (; c + kStep <= columns; c += kStep) {
      prefetch_rows(group + 4 * stride + c, stride, kStep);
      relate(group + c, stride, c / 8, relations);
    }
    if (c < columns) {
      float last[4 * kStep] = {};
      for (int r = 0; r < 4; ++r) {
        std::copy_n(group + r * stride + c, columns - c, last + r * kStep);
      }
      relate(last, kStep, c / 8, relations);
    }
    for (int64_t at = 0; at < (columns + 7) / 8; at += kWordBytes) decide(relations, at, kept);
    for (int r = 0; r < 4; ++r) {
      std::memcpy(bits + r * bytes + first / 2, kept[r], static_cast<size_t>(columns + 7) / 8);
    }
  }
  return true;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(select_greedy);

}  // namespace

void greedy_tiles(const float* weights, int64_t stride, int64_t tiles, uint8_t* bits,
                  int64_t bytes) {
  if (!use_reference_kernels() &&
      HWY_DYNAMIC_DISPATCH(select_greedy)(weights, stride, tiles, bits, bytes)) {
    return;
  }
  reference::select_tiles(reference::select_greedily, weights, stride, {0, tiles}, bits, bytes);
}

}  // namespace lacuna
#endif  // HWY_ONCE
