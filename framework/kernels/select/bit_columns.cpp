// A vector of numbers is packed by the mask's own bits, so no branch depends on the number of
// set bits; a loop over the ones of a word mispredicts its end. Words without ones are
// skipped.
#include "lacuna/framework/kernels/select/bit_columns.hpp"

#include <algorithm>
#include <bit>

#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/select/bit_columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/packing.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {

// Works on 64-bit chunks; chunk c covers the columns from 64 · c on.
int64_t ListBits(const uint64_t* chunks, int64_t count, uint32_t first, uint32_t* into) {
  const hn::CappedTag<uint32_t, 16> d;
  const auto lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto step = hn::Set(d, lanes);
  constexpr int kFewOnes = 12;
  uint32_t* const begin = into;
  for (int64_t c = 0; c < count; ++c, first += 64) {
    uint64_t chunk = chunks[c];
    if (std::popcount(chunk) <= kFewOnes) {
      for (; chunk != 0; chunk &= chunk - 1) {
        *into++ = first + static_cast<uint32_t>(std::countr_zero(chunk));
      }
      continue;
    }
    auto columns = hn::Iota(d, first);
    for (uint32_t i = 0; i < 64; i += lanes) {
      const Packing<decltype(d)> packing(chunk);
      hn::StoreU(packing(columns), d, into);
      into += packing.count();
      columns = hn::Add(columns, step);
      chunk >>= lanes;
    }
  }
  return into - begin;
}

}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {

HWY_EXPORT(ListBits);

namespace {

int64_t list_bits_reference(const uint64_t* chunks, int64_t count, uint32_t first, uint32_t* into) {
  uint32_t* const begin = into;
  for (int64_t c = 0; c < count; ++c, first += 64) {
    for (uint64_t rest = chunks[c]; rest != 0; rest &= rest - 1) {
      *into++ = first + static_cast<uint32_t>(std::countr_zero(rest));
    }
  }
  return into - begin;
}

}  // namespace

int64_t bit_columns(std::span<const uint64_t> words, int64_t begin, int64_t end, uint32_t* into) {
  constexpr int64_t kChunks = 64;
  const auto list = use_reference_kernels() ? list_bits_reference : HWY_DYNAMIC_DISPATCH(ListBits);
  const int64_t columns = end - begin;
  if (begin % 64 == 0 && columns % 64 == 0) {
    return list(words.data() + begin / 64, columns / 64, 0, into);
  }
  // Rows may begin or end within a word: they are shifted to begin with one.
  uint64_t chunks[kChunks];
  const auto shift = static_cast<int>(begin % 64);
  uint32_t* const first = into;
  for (int64_t done = 0; done < columns; done += 64 * kChunks) {
    const int64_t count = std::min((columns - done + 63) / 64, kChunks);
    for (int64_t c = 0; c < count; ++c) {
      const auto w = static_cast<size_t>((begin + done) / 64 + c);
      const uint64_t next = w + 1 < words.size() ? words[w + 1] : 0;
      chunks[c] = shift == 0 ? words[w] : words[w] >> shift | next << (64 - shift);
    }
    const int64_t last = columns - done - 64 * (count - 1);  // bits of the last chunk
    if (last < 64) chunks[count - 1] &= (uint64_t{1} << last) - 1;
    into += list(chunks, count, static_cast<uint32_t>(done), into);
  }
  return into - first;
}

}  // namespace lacuna
#endif  // HWY_ONCE
