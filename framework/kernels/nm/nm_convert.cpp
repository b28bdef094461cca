// Converts dense matrices to slots' values and back: see nm.hpp.
//
// From dense, a vector of slots gets its values by lookups, like the inputs of a batch of one. Rows
// are read from end to end, tile after tile: most of the time is spent on loading the dense matrix
// from memory, which is faster in this order.
//
// To dense, if a group is four columns with one or two slots, each lane of a vector of columns
// selects the slot with its code. Other formats run scalar code.
#include <algorithm>
#include <bit>
#include <cstring>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_convert.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_lookup.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// Calls `body(row, its number, first slot, first column)` for a row's part of each tile.
template <class Body>
HWY_INLINE void for_each_part(const NmMatrix& s, int64_t begin, int64_t end, const Body& body) {
  const NmTile first = s.form.tile(0), last = s.form.tile(s.form.tiles() - 1);
  const int64_t tiles = s.form.tiles();
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t t = 0; t < tiles; ++t) {  // all tiles but the last are equal
      const NmTile& tile = t + 1 < tiles ? first : last;
      const int64_t slots_before = t * s.form.rows * first.slots;
      const int64_t bytes_before = t * s.form.rows * first.code_bytes;
      const NmRow row{.codes = s.codes.data() + bytes_before + r * tile.code_bytes,
                      .slots = tile.slots,
                      .m = s.form.m(),
                      .in_group = s.form.slots()};
      body(row, r, slots_before + r * tile.slots, t * first.columns);
    }
  }
}

// Rows [begin, end).
void from_dense(const NmMatrix& s, int64_t begin, int64_t end, const float* dense, float* values) {
  with_parts(s.form, [&]<class Code, int kParts>(Code, Parts<kParts>) HWY_ATTR {
    with_lookup<Code, kParts>(s.form, [&](const auto& take) HWY_ATTR {
      for_each_part(
          s, begin, end, [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
            const float* x = dense + r * s.form.columns + column;
            float* into = values + slot;
            int64_t at = 0;
            if constexpr (kParts > 0) {
              for (; at + kLookupLanes <= row.slots; at += kLookupLanes) {
                hn::StoreU(take(row, at, x), Floats(), into + at);
              }
            }
            for_each_column<Code>(row, at, [&](int64_t i, int64_t c) HWY_ATTR { into[i] = x[c]; });
          });
    });
  });
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
// Vectors of columns in groups of four with kSlots slots each; returns the number of columns
// written.
template <int kSlots>
HWY_INLINE int64_t spread(const NmRow& row, const float* values, float* into) {
  using Integers = hn::RebindToSigned<Floats>;
  const hn::RebindToUnsigned<Floats> u;
  constexpr int kGroups = kLookupLanes / 4, kTaken = kGroups * kSlots;
  HWY_ALIGN int32_t first[kLookupLanes];
  HWY_ALIGN uint32_t shift[kLookupLanes], number[kLookupLanes];
  for (int lane = 0; lane < kLookupLanes; ++lane) {
    first[lane] = lane / 4 * kSlots;
    shift[lane] = static_cast<uint32_t>(lane / 4 * kSlots * 2);
    number[lane] = static_cast<uint32_t>(lane % 4);
  }
  const auto slot = hn::Load(Integers(), first);
  const auto shifts = hn::Load(u, shift), mine = hn::Load(u, number), low = hn::Set(u, 3);
  int64_t column = 0;
  if constexpr (kTaken % 4 != 0) return column;  // codes do not fill whole bytes
  const hn::Half<Floats> half;
  constexpr int kRead = kSlots == 2 ? kTaken : kLookupLanes;
  for (int64_t at = 0; at + kRead <= row.slots; at += kTaken, column += kLookupLanes) {
    uint16_t word = 0;
    std::memcpy(&word, row.codes + at / 4, sizeof word);
    const auto codes = hn::Shr(hn::Set(u, word), shifts);
    const Vector some = kSlots == 2 ? hn::ZeroExtendVector(Floats(), hn::LoadU(half, values + at))
                                    : hn::LoadU(Floats(), values + at);
    Vector taken = hn::Zero(Floats());
    for (int k = 0; k < kSlots; ++k) {
      const auto index = hn::IndicesFromVec(Floats(), hn::Add(slot, hn::Set(Integers(), k)));
      const auto code = hn::And(k == 0 ? codes : hn::ShiftRight<2>(codes), low);
      const auto is_mine = hn::RebindMask(Floats(), hn::Eq(code, mine));
      const Vector value = hn::TableLookupLanes(some, index);
      // An unused slot, of value zero, may have the code of one that is used.
      taken = hn::Or(taken, hn::IfThenElseZero(is_mine, value));
    }
    hn::StoreU(taken, Floats(), into + column);
  }
  return column;
}
#else
template <int kSlots>
HWY_INLINE int64_t spread(const NmRow&, const float*, float*) {
  return 0;
}
#endif

// An unused slot has value zero and must not change the place.
HWY_INLINE void put_bits(float value, float& into) {
  into = std::bit_cast<float>(std::bit_cast<uint32_t>(into) | std::bit_cast<uint32_t>(value));
}

void to_dense(const NmMatrix& s, int64_t begin, int64_t end, const float* values, float* dense) {
  with_code(s.form, [&]<class Code>(Code) HWY_ATTR {
    for_each_part(s, begin, end,
                  [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
                    float* into = dense + r * s.form.columns + column;
                    int64_t done = 0;
                    if constexpr (Code::kBits == 2 && Code::kSlots <= 2) {
                      if (s.form.m() == 4) done = spread<Code::kSlots>(row, values + slot, into);
                    }
                    std::fill(into + done, into + row.slots / row.in_group * row.m, 0.0f);
                    for_each_column<Code>(row, done / row.m * row.in_group,
                                          [&](int64_t i, int64_t c)
                                              HWY_ATTR { put_bits(values[slot + i], into[c]); });
                  });
  });
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(from_dense);
HWY_EXPORT(to_dense);

}  // namespace

void nm_from_dense(const NmMatrix& matrix, const float* dense, float* values) {
  const auto run = HWY_DYNAMIC_DISPATCH(from_dense);
  parallel_for(matrix.form.rows, matrix.form.rows_of_block(),
               [&](int64_t begin, int64_t end) { run(matrix, begin, end, dense, values); });
  for (const uint32_t slot : matrix.unused) values[slot] = 0.0f;
}

void nm_to_dense(const NmMatrix& matrix, const float* values, float* dense) {
  const auto run = HWY_DYNAMIC_DISPATCH(to_dense);
  parallel_for(matrix.form.rows, matrix.form.rows_of_block(),
               [&](int64_t begin, int64_t end) { run(matrix, begin, end, values, dense); });
}

}  // namespace lacuna
#endif  // HWY_ONCE
