// Selecting by groups, many at a time: a lane for each group.
//
// Elements are read so that vector i holds element i of each group. A group's N largest are found
// by insertion into a sorted list of N vectors, which gives the smallest key that is kept; what is
// at least that is kept. Where more than N are, because some are equal, the step is done again with
// counts. Four floats of AVX-512 work for each float read.
#include "lacuna/framework/kernels/nm_selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/nm_selection_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm_selection.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/groups_of_four.inc"

#ifndef LACUNA_NM_SELECTION_PART
#define LACUNA_NM_SELECTION_PART
namespace lacuna {
namespace {

// Floats selected together: whole groups, and two words of bits.
constexpr int64_t kPart = 128;
constexpr int64_t kMostLanes = 16;

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
bool select_parts(int, int, const float*, int64_t, uint64_t*) { return false; }
bool select_values(int, int, const float*, float*, uint8_t*) { return false; }
#else

// Lanes are groups: as many as a part has, where a vector has room for them.
template <int m>
using Groups = hn::CappedTag<float, static_cast<size_t>(kPart / m)>;
template <int m>
using Keys = hn::RebindToSigned<Groups<m> >;

// Element i of each group of m, from m · lanes floats. Groups of four are in load_fours' order.
template <int m, class D>
HWY_INLINE void load_groups(D d, const float* w, hn::Vec<D>* elements) {
  if constexpr (m == 4) {
    load_fours(d, w, elements);
  } else {  // two groups of half the size, side by side
    constexpr int kHalf = m / 2;
    constexpr auto kSecond = kHalf * static_cast<int64_t>(hn::MaxLanes(d));
    hn::Vec<D> low[kHalf], high[kHalf];
    if constexpr (kHalf == 4) {
      hn::LoadInterleaved4(d, w, low[0], low[1], low[2], low[3]);
      hn::LoadInterleaved4(d, w + kSecond, high[0], high[1], high[2], high[3]);
    } else {
      load_groups<kHalf>(d, w, low);
      load_groups<kHalf>(d, w + kSecond, high);
    }
    for (int i = 0; i < kHalf; ++i) {
      elements[i] = hn::ConcatEven(d, high[i], low[i]);
      elements[i + kHalf] = hn::ConcatOdd(d, high[i], low[i]);
    }
  }
}

// Integers in the order of |w|, NaN being −1.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D> > keys_of(D d, hn::Vec<D> w) {
  const hn::RebindToSigned<D> k;
  const auto bits = hn::And(hn::BitCast(k, w), hn::Set(k, 0x7fffffff));
  return hn::Max(hn::Add(bits, hn::Set(k, 0x007fffff)), hn::Set(k, -1));  // NaN overflows
}

// The n-th largest of m keys, in each lane.
template <int n, int m, class K>
HWY_INLINE hn::Vec<K> nth_largest(K, const hn::Vec<K> (&keys)[m]) {
  hn::Vec<K> list[n];
  for (int i = 0; i < m; ++i) {
    auto key = keys[i];
    for (int at = 0; at < n; ++at) {
      if (at == i) {
        list[at] = key;
        break;
      }
      const auto larger = hn::Max(list[at], key);
      if (at + 1 < n) key = hn::Min(list[at], key);
      list[at] = larger;
    }
  }
  return list[n - 1];
}

// Bits of the keys that are at least `least`.
template <int m, class K>
HWY_INLINE hn::Vec<K> bits_of_largest(K k, const hn::Vec<K> (&keys)[m], hn::Vec<K> least) {
  auto bits = hn::Zero(k);
  for (int i = 0; i < m; ++i) {
    bits = hn::Or(bits, hn::IfThenElseZero(hn::Not(hn::Lt(keys[i], least)), hn::Set(k, 1 << i)));
  }
  return bits;
}

// Those above `least`, and of those equal to it the first, n in all.
template <int n, int m, class K>
HWY_INLINE hn::Vec<K> bits_of_first(K k, const hn::Vec<K> (&keys)[m], hn::Vec<K> least) {
  auto room = hn::Set(k, n);
  for (int i = 0; i < m; ++i) {
    room = hn::Add(room, hn::VecFromMask(k, hn::Gt(keys[i], least)));  // a mask is −1
  }
  auto bits = hn::Zero(k);
  for (int i = 0; i < m; ++i) {
    const auto takes = hn::And(hn::Eq(keys[i], least), hn::Gt(room, hn::Zero(k)));
    room = hn::Add(room, hn::VecFromMask(k, takes));
    const auto kept = hn::Or(hn::Gt(keys[i], least), takes);
    bits = hn::Or(bits, hn::IfThenElseZero(kept, hn::Set(k, 1 << i)));
  }
  return bits;
}

// m bits of each lane, one after the other.
template <int m, class K>
HWY_INLINE void store_bits(K k, hn::Vec<K> bits, uint8_t* to) {
  const hn::RebindToUnsigned<K> u;
  if constexpr (m == 4) {  // two lanes make a byte
    const hn::Repartition<uint64_t, K> pairs;
    const hn::Rebind<uint8_t, decltype(pairs)> bytes;
    const auto pair = hn::BitCast(pairs, in_order(k, bits));
    hn::StoreU(hn::TruncateTo(bytes, hn::Or(pair, hn::ShiftRight<28>(pair))), bytes, to);
  } else if constexpr (m == 8) {
    const hn::Rebind<uint8_t, K> bytes;
    hn::StoreU(hn::TruncateTo(bytes, hn::BitCast(u, bits)), bytes, to);
  } else {
    const hn::Rebind<uint16_t, K> words;
    HWY_ALIGN uint16_t lanes[hn::MaxLanes(words)];
    hn::Store(hn::TruncateTo(words, hn::BitCast(u, bits)), words, lanes);
    std::memcpy(to, lanes, sizeof lanes);
  }
}

// The bits of kPart floats; of equal ones all, or the first.
template <int n, int m, bool kFirst>
HWY_INLINE void select_step(const float* w, uint8_t* to) {
  const Groups<m> d;
  const Keys<m> k;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  for (int64_t at = 0; at < kPart; at += m * kLanes) {
    hn::Vec<Groups<m> > elements[m];
    load_groups<m>(d, w + at, elements);
    hn::Vec<Keys<m> > keys[m];
    for (int i = 0; i < m; ++i) keys[i] = keys_of(d, elements[i]);
    const auto least = nth_largest<n>(k, keys);
    if constexpr (kFirst) {
      store_bits<m>(k, bits_of_first<n>(k, keys, least), to + at / 8);
    } else {
      store_bits<m>(k, bits_of_largest(k, keys, least), to + at / 8);
    }
  }
}

template <int n, int m>
HWY_NOINLINE void select_first_of_equal(const float* w, uint8_t* to) {
  select_step<n, m, true>(w, to);
}

template <int n, int m>
HWY_INLINE void select_part(const float* w, uint8_t* to) {
  select_step<n, m, false>(w, to);
  uint64_t words[2];
  std::memcpy(words, to, sizeof words);
  if (std::popcount(words[0]) + std::popcount(words[1]) != kPart / m * n) {
    select_first_of_equal<n, m>(w, to);
  }
}

// Calls `body(Format<n, m>())` where there is code for it.
template <int n, int m>
struct Format {};
template <class Body>
HWY_INLINE bool with_format(int n, int m, const Body& body) {
  if (m == 4 && n == 1) return body(Format<1, 4>()), true;
  if (m == 4 && n == 2) return body(Format<2, 4>()), true;
  if (m == 8 && n == 1) return body(Format<1, 8>()), true;
  if (m == 8 && n == 2) return body(Format<2, 8>()), true;
  if (m == 8 && n == 4) return body(Format<4, 8>()), true;
  if (m == 16 && n == 1) return body(Format<1, 16>()), true;
  if (m == 16 && n == 2) return body(Format<2, 16>()), true;
  if (m == 16 && n == 4) return body(Format<4, 16>()), true;
  return false;
}

// `count` parts; false where there is no code for the format.
bool select_parts(int n, int m, const float* w, int64_t count, uint64_t* words) {
  return with_format(n, m, [&]<int kN, int kM>(Format<kN, kM>) HWY_ATTR {
    for (int64_t part = 0; part < count; ++part) {
      select_part<kN, kM>(w + part * kPart, reinterpret_cast<uint8_t*>(words + 2 * part));
    }
  });
}

// The floats whose bits are set, side by side. Writes up to a vector more.
HWY_INLINE void compress_part(const float* w, const uint8_t* bits, int in_vector, float* to) {
  const hn::CappedTag<float, kMostLanes> d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  for (int64_t at = 0; at < kPart; at += kLanes, to += in_vector) {
    uint64_t word = 0;
    std::memcpy(&word, bits + at / 8, 2);
    word >>= at % 8;
    uint8_t mask[8];
    std::memcpy(mask, &word, sizeof mask);
    const auto kept = hn::LoadMaskBits(d, mask);
    hn::StoreU(hn::Compress(hn::LoadU(d, w + at), kept), d, to);
  }
}

// Codes of kPart floats: of each byte of bits as many as are set in it.
template <int n, int m>
HWY_INLINE void codes_of_part(const uint8_t* bits, uint8_t* codes) {
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
    const hn::CappedTag<float, kMostLanes> d;
    if constexpr (static_cast<int>(hn::MaxLanes(d)) % kM == 0) {
      compress_part(w, bits, static_cast<int>(hn::MaxLanes(d)) / kM * kN, values);
    } else {
      for (int64_t i = 0; i < kPart; ++i) {
        *values = w[i];
        values += bits[i / 8] >> (i % 8) & 1;
      }
    }
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

HWY_EXPORT(select_parts);
HWY_EXPORT(select_values);

void require_size(const NmForm& form, std::span<const float> weights) {
  if (static_cast<int64_t>(weights.size()) == form.rows * form.columns) return;
  throw ShapeError("a selection of " + std::to_string(form.rows) + " rows of " +
                   std::to_string(form.columns) + " was given " + std::to_string(weights.size()) +
                   " weights");
}

// Bits [first, first + m) of the words; m may divide no word.
void set_bits(uint64_t* words, int64_t first, uint32_t bits) {
  for (; bits != 0; bits &= bits - 1) {
    const int64_t at = first + std::countr_zero(bits);
    words[at / 64] |= uint64_t{1} << (at % 64);
  }
}

// Floats [0, count) group by group.
void select_plainly(const NmForm& form, const float* w, int64_t count, uint64_t* words) {
  for (int64_t at = 0; at < count; at += form.m) {
    set_bits(words, at, reference::select_of_group(w + at, form.n, form.m));
  }
}

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

BitMask nm_select(const NmForm& form, std::span<const float> weights) {
  require_size(form, weights);
  const auto run = HWY_DYNAMIC_DISPATCH(select_parts);
  const auto size = static_cast<int64_t>(weights.size());
  std::vector<uint64_t> words(static_cast<size_t>((size + 63) / 64) + 1);
  const int64_t grain = 64 * kPart * form.m;  // whole groups, parts and words
  parallel_for(size, grain, [&](int64_t begin, int64_t end) {
    const float* w = weights.data() + begin;
    uint64_t* to = words.data() + begin / 64;
    const int64_t parts = (end - begin) / kPart;
    const bool is_done = !use_reference_kernels() && run(form.n, form.m, w, parts, to);
    const int64_t done = is_done ? parts * kPart : 0;
    select_plainly(form, w + done, end - begin - done, to + done / 64);
  });
  words.pop_back();
  return BitMask::from_words(size, std::move(words));
}

void nm_select_values(const NmForm& form, std::span<const float> weights, NmMatrix& matrix,
                      std::span<float> values) {
  require_size(form, weights);
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
