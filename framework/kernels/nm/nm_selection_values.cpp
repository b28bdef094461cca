// Selects N:M matrices with their values, in one pass: see nm_selection.hpp.
//
// Tables convert the bits of a row in a tile to its codes, a byte at a time; compressed vectors
// give its values.
#include "lacuna/framework/kernels/nm/nm_selection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm_selection_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_selection_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_codes.inc"
#include "lacuna/framework/kernels/simd/packing.inc"

#ifndef LACUNA_NM_VALUES_RUN
#define LACUNA_NM_VALUES_RUN
namespace lacuna {
namespace {

// Rows [begin, end) to select from.
struct ValuesRun {
  const NmMatrixForm* form = nullptr;
  const std::vector<NmTile>* tiles = nullptr;
  int64_t begin = 0, end = 0;
  const float* weights = nullptr;
  float* values = nullptr;
  uint8_t* codes = nullptr;
};

// Clears everything after the first `filled` bits of `bytes`.
inline void clear_codes(int64_t filled, int64_t bytes, uint8_t* codes) {
  if (filled == 8 * bytes) return;
  if (filled % 8 != 0) {
    uint8_t& byte = codes[filled / 8];
    byte = static_cast<uint8_t>(byte & ((1 << (filled % 8)) - 1));
  }
  std::fill(codes + (filled + 7) / 8, codes + bytes, uint8_t{0});
}

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
bool select_values(const ValuesRun&) { return false; }
#else

// The floats whose bits are set, packed: n of each m. Writes up to 16 more.
template <int n, int m>
HWY_INLINE void compress_part(const float* w, const uint8_t* bits, float* to) {
  const hn::CappedTag<float, kMostLanes> d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  for (int64_t at = 0; at < kPart; at += kLanes) {
    const Packing<decltype(d)> packing(bits, at);
    hn::StoreU(packing(hn::LoadU(d, w + at)), d, to);
    to += kLanes % m == 0 ? kLanes / m * n : packing.count();
  }
}

// Values and codes of kPart floats: the slots of a row in a tile, and a vector more.
template <int n, int m>
HWY_INLINE void values_of_part(const float* w, float* values, uint8_t* codes) {
  uint8_t bits[kPart / 8 + 8] = {};
  select_part<n, m>(w, bits);
  compress_part<n, m>(w, bits, values);
  codes_of_part<n, m>(bits, codes);
}

// Processes rows from end to end; false if there is no code for the format.
bool select_values(const ValuesRun& run) {
  return with_format(run.form->n(), run.form->m(), [&]<int n, int m>(Format<n, m>) HWY_ATTR {
    constexpr int64_t kCodeBytes = kPart / m * n * (m <= 4 ? 2 : 4) / 8;
    float part[kPart], kept[kPart + kMostLanes];
    uint8_t codes[kPart];
    for (int64_t row = run.begin; row < run.end; ++row) {
      for (const NmTile& tile : *run.tiles) {
        const float* w = run.weights + row * run.form->columns + tile.first_column;
        float* into = run.values + tile.first_slot + row * tile.slots;
        uint8_t* into_codes = run.codes + tile.first_code + row * tile.code_bytes;
        // Writing past the row's slots is safe if rows follow, whose slots are written later.
        if (tile.columns == kPart && (run.end - row - 1) * tile.slots >= kMostLanes) {
          values_of_part<n, m>(w, into, codes);
          std::memcpy(into_codes, codes, kCodeBytes);
          continue;
        }
        std::fill(std::copy_n(w, tile.columns, part), part + kPart, 0.0f);
        values_of_part<n, m>(part, kept, codes);
        std::memcpy(into, kept, static_cast<size_t>(tile.slots) * sizeof(float));
        std::memcpy(into_codes, codes, static_cast<size_t>(tile.code_bytes));
        clear_codes(tile.slots * run.form->code_bits(), tile.code_bytes, into_codes);
      }
    }
  });
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(select_values);

// The slots of one row in one tile, whose codes must be zero before.
void select_row_plainly(const NmMatrixForm& form, const float* w, int64_t columns, float* values,
                        uint8_t* codes) {
  const int bits = form.code_bits();
  int64_t slot = 0;
  for (int64_t at = 0; at < columns; at += form.m()) {
    const int64_t end = slot + form.slots();
    for (uint32_t kept = reference::select_of_group(w + at, form.n(), form.m()); kept != 0;
         kept &= kept - 1, ++slot) {
      const int number = std::countr_zero(kept);
      values[slot] = w[at + number];
      uint8_t& byte = codes[slot * bits / 8];
      byte = static_cast<uint8_t>(byte | number << (slot * bits % 8));
    }
    for (; slot < end; ++slot) values[slot] = 0.0f;
  }
}

// The slots of each group that the selection never fills.
std::vector<uint32_t> padding(const NmMatrixForm& form) {
  std::vector<uint32_t> slots;
  const int64_t in_group = form.slots();
  if (in_group == form.n()) return slots;
  for (int64_t group = 0; group < form.stored(); group += in_group) {
    for (int64_t k = form.n(); k < in_group; ++k) slots.push_back(static_cast<uint32_t>(group + k));
  }
  return slots;
}

}  // namespace

void nm_select_values(const NmMatrixForm& form, std::span<const float> weights, NmMatrix& matrix,
                      std::span<float> values) {
  form.require_weights(weights.size());
  const auto run = HWY_DYNAMIC_DISPATCH(select_values);
  matrix.form = form;
  matrix.unused = padding(form);
  matrix.codes.assign(static_cast<size_t>(form.code_bytes()) + 8, 0);
  std::vector<NmTile> tiles;
  for (int64_t t = 0; t < form.tiles(); ++t) tiles.push_back(form.tile(t));
  parallel_for(form.rows, form.rows_of_block(), [&](int64_t begin, int64_t end) {
    const ValuesRun block{.form = &form,
                          .tiles = &tiles,
                          .begin = begin,
                          .end = end,
                          .weights = weights.data(),
                          .values = values.data(),
                          .codes = matrix.codes.data()};
    if (!use_reference_kernels() && run(block)) return;
    for (int64_t row = begin; row < end; ++row) {
      for (const NmTile& tile : tiles) {
        select_row_plainly(form, weights.data() + row * form.columns + tile.first_column,
                           tile.columns, values.data() + tile.first_slot + row * tile.slots,
                           matrix.codes.data() + tile.first_code + row * tile.code_bytes);
      }
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
