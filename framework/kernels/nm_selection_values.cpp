// Selecting N:M matrices with their values, in one pass: see nm_selection.h.
//
// The bits of a row's part of a tile give its codes by tables, a byte at a time, and its values by
// compressing vectors.
#include "lacuna/framework/kernels/nm_selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/nm_selection_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm_selection_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm_codes.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
bool select_values(int, int, const float*, float*, uint8_t*) { return false; }
#else

// The floats whose bits are set, side by side; `in_sixteen` of each 16. Writes up to 16 more.
HWY_INLINE void compress_part(const float* w, const uint8_t* bits, int in_sixteen, float* to) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const hn::FixedTag<float, kMostLanes> d;
  for (int64_t at = 0; at < kPart; at += kMostLanes, to += in_sixteen) {
    uint8_t mask[8] = {bits[at / 8], bits[at / 8 + 1]};  // LoadMaskBits may read eight bytes
    hn::StoreU(hn::Compress(hn::LoadU(d, w + at), hn::LoadMaskBits(d, mask)), d, to);
  }
#else  // twice as fast there
  static_cast<void>(in_sixteen);
  for (int64_t i = 0; i < kPart; ++i) {
    *to = w[i];
    to += bits[i / 8] >> (i % 8) & 1;
  }
#endif
}

// Values and codes of kPart floats: the slots of a row in a tile, and a vector more.
bool select_values(int n, int m, const float* w, float* values, uint8_t* codes) {
  return with_format(n, m, [&]<int kN, int kM>(Format<kN, kM>) HWY_ATTR {
    uint8_t bits[kPart / 8 + 8] = {};
    select_part<kN, kM>(w, bits);
    compress_part(w, bits, kMostLanes / kM * kN, values);
    codes_of_part<kN, kM>(bits, codes);
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

constexpr int64_t kPart = NmForm::kMostTileColumns;

// The slots of one row in one tile, whose codes are zero before.
void select_row_plainly(const NmForm& form, const float* w, int64_t columns, float* values,
                        uint8_t* codes) {
  const int bits = form.code_bits();
  int64_t slot = 0;
  for (int64_t at = 0; at < columns; at += form.m) {
    const int64_t end = slot + form.slots();
    for (uint32_t kept = reference::select_of_group(w + at, form.n, form.m); kept != 0;
         kept &= kept - 1, ++slot) {
      const int number = std::countr_zero(kept);
      values[slot] = w[at + number];
      uint8_t& byte = codes[slot * bits / 8];
      byte = static_cast<uint8_t>(byte | number << (slot * bits % 8));
    }
    for (; slot < end; ++slot) values[slot] = 0.0f;
  }
}

// Makes what follows `filled` bits of `bytes` zero.
void clear_codes(int64_t filled, int64_t bytes, uint8_t* codes) {
  if (filled == 8 * bytes) return;
  if (filled % 8 != 0) {
    uint8_t& byte = codes[filled / 8];
    byte = static_cast<uint8_t>(byte & ((1 << (filled % 8)) - 1));
  }
  std::fill(codes + (filled + 7) / 8, codes + bytes, uint8_t{0});
}

// The slots of each group that no selection fills.
std::vector<uint32_t> padding(const NmForm& form) {
  std::vector<uint32_t> slots;
  const int64_t in_group = form.slots();
  if (in_group == form.n) return slots;
  for (int64_t group = 0; group < form.stored(); group += in_group) {
    for (int64_t k = form.n; k < in_group; ++k) slots.push_back(static_cast<uint32_t>(group + k));
  }
  return slots;
}

}  // namespace

void nm_select_values(const NmForm& form, std::span<const float> weights, NmMatrix& matrix,
                      std::span<float> values) {
  form.require_weights(weights.size());
  const auto run = HWY_DYNAMIC_DISPATCH(select_values);
  matrix.form = form;
  matrix.unused = padding(form);
  matrix.codes.assign(static_cast<size_t>(form.code_bytes()) + 8, 0);
  std::vector<NmTile> tiles;
  for (int64_t t = 0; t < form.tiles(); ++t) tiles.push_back(form.tile(t));
  parallel_for(form.rows, form.rows_of_block(), [&](int64_t begin, int64_t end) {
    std::array<float, kPart> part;
    std::array<float, 2 * kPart> kept;
    std::array<uint8_t, kPart> codes;
    for (int64_t row = begin; row < end; ++row) {
      for (const NmTile& tile : tiles) {
        const float* w = weights.data() + row * form.columns + tile.first_column;
        float* into = values.data() + tile.first_slot + row * tile.slots;
        uint8_t* into_codes = matrix.codes.data() + tile.first_code + row * tile.code_bytes;
        if (tile.columns < kPart) {
          std::fill(std::copy_n(w, tile.columns, part.begin()), part.end(), 0.0f);
          w = part.data();
        }
        // What is written past the row's slots are those of rows that follow, where there are some.
        const bool is_direct = tile.columns == kPart && (end - row - 1) * tile.slots >= kMostLanes;
        if (!use_reference_kernels() &&
            run(form.n, form.m, w, is_direct ? into : kept.data(), codes.data())) {
          if (!is_direct) {
            std::memcpy(into, kept.data(), static_cast<size_t>(tile.slots) * sizeof(float));
          }
          std::memcpy(into_codes, codes.data(), static_cast<size_t>(tile.code_bytes));
          clear_codes(tile.slots * form.code_bits(), tile.code_bytes, into_codes);
        } else {
          select_row_plainly(form, w, tile.columns, into, into_codes);
        }
      }
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
