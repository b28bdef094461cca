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

#include "lacuna/framework/kernels/nm_select_part.inc"

#ifndef LACUNA_NM_NUMBERS_OF_BITS
#define LACUNA_NM_NUMBERS_OF_BITS
namespace lacuna {
namespace {

constexpr int kMostLanes = 16;

// By a byte of bits, the numbers of those that are set, four bits each.
constexpr std::array<uint32_t, 256> numbers_of_bits() {
  std::array<uint32_t, 256> numbers = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t filled = 0;
    for (uint32_t bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1u) != 0) numbers[byte] |= bit << (4 * filled++);
    }
  }
  return numbers;
}
constexpr std::array<uint32_t, 256> kNumbersOfBits = numbers_of_bits();

// The same for two groups of four: two bits each.
constexpr std::array<uint8_t, 256> numbers_in_fours() {
  std::array<uint8_t, 256> numbers = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t filled = 0, packed = 0;
    for (uint32_t bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1u) != 0 && filled < 4) packed |= bit % 4 << (2 * filled++);
    }
    numbers[byte] = static_cast<uint8_t>(packed);
  }
  return numbers;
}
constexpr std::array<uint8_t, 256> kNumbersInFours = numbers_in_fours();

}  // namespace
}  // namespace lacuna
#endif

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

// Codes of kPart floats at 2:4: each four bits make four, by a lookup in a register.
HWY_INLINE void codes_of_two_of_four(const uint8_t* bits, uint8_t* codes) {
  static_assert(kPart == 8 * 16);
  const hn::FixedTag<uint8_t, 16> d;
  const hn::Repartition<uint16_t, decltype(d)> two;
  const auto table = hn::LoadU(d, kNumbersInFours.data()), low = hn::Set(d, 15);
  const auto all = hn::LoadU(d, bits);
  const auto upper = hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(two, all)));
  const auto first = hn::TableLookupBytes(table, hn::And(all, low));
  const auto second = hn::TableLookupBytes(table, hn::And(upper, low));
  const auto moved = hn::BitCast(d, hn::ShiftLeft<4>(hn::BitCast(two, second)));
  hn::StoreU(hn::Or(first, moved), d, codes);
}

// Codes of kPart floats: of each byte of bits as many as are set in it.
template <int n, int m>
HWY_INLINE void codes_of_part(const uint8_t* bits, uint8_t* codes) {
  if constexpr (m == 4 && n == 2) return codes_of_two_of_four(bits, codes);
  const auto of_byte = [&](int64_t byte) HWY_ATTR -> uint32_t {
    return m == 4 ? kNumbersInFours[bits[byte]] : kNumbersOfBits[bits[byte]];
  };
  for (int64_t byte = 0; byte < kPart / 8; byte += 2) {
    if constexpr (m == 16) {  // the second byte's numbers begin at eight, behind the first one's
      const int filled = 4 * std::popcount(bits[byte]), rest = 4 * std::popcount(bits[byte + 1]);
      const uint32_t eights = 0x88888888u & ((1u << rest) - 1);
      const uint32_t both = of_byte(byte) | (of_byte(byte + 1) | eights) << filled;
      if constexpr (n == 1) {
        const auto half = static_cast<uint8_t>(byte % 4 == 0 ? both : codes[byte / 4] | both << 4);
        codes[byte / 4] = half;
      } else {
        std::memcpy(codes + byte / 2 * n / 2, &both, n / 2);
      }
    } else if constexpr (n == 1) {
      codes[byte / 2] = static_cast<uint8_t>(of_byte(byte) | of_byte(byte + 1) << 4);
    } else {
      const uint32_t both = of_byte(byte) | of_byte(byte + 1) << (4 * n);
      std::memcpy(codes + byte * n / 2, &both, n);
    }
  }
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
