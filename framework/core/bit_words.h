// Bits in 64-bit words that do not begin where a word does.
#pragma once

#include <cstdint>

namespace lacuna {

/// Sets those of the first `count` bits of `from` that are set, in `words` from bit `first` on; the
/// others there stay. What follows the first `count` bits of `from` is not looked at, but for their
/// last word.
inline void put_bits(const uint64_t* from, int64_t count, int64_t first, uint64_t* words) {
  uint64_t* word = words + first / 64;
  const int64_t shift = first % 64;
  for (; count > 0; count -= 64, ++from, ++word) {
    const uint64_t some = count < 64 ? *from & ((uint64_t{1} << count) - 1) : *from;
    word[0] |= some << shift;
    // The next word exists where bits are left for it.
    if (shift != 0 && count > 64 - shift) word[1] |= some >> (64 - shift);
  }
}

}  // namespace lacuna
