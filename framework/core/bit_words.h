// Counting and placing bits in 64-bit words.
#pragma once

#include <cstdint>
#include <span>

namespace lacuna {

/// The 64 bits from bit `first` on; those past the last word are zero. *Requires* that bit `first`
/// is in the words.
inline uint64_t bits_from(std::span<const uint64_t> words, int64_t first) {
  const auto word = static_cast<size_t>(first / 64);
  const int64_t shift = first % 64;
  uint64_t bits = words[word] >> shift;
  if (shift != 0 && word + 1 < words.size()) bits |= words[word + 1] << (64 - shift);
  return bits;
}

/// std::popcount, which is a call where the processor is not known to have an instruction for it.
inline int64_t count_ones(uint64_t word) {
  word -= word >> 1 & 0x5555555555555555u;
  word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return static_cast<int64_t>(word * 0x0101010101010101u >> 56);
}

/// Sets the bits of `words`, from bit `first` on, that are set among the first `count` bits of
/// `from`; all others keep their value. No word of `from` is read after the last one that holds one
/// of these bits.
inline void put_bits(const uint64_t* from, int64_t count, int64_t first, uint64_t* words) {
  uint64_t* word = words + first / 64;
  const int64_t shift = first % 64;
  for (; count > 0; count -= 64, ++from, ++word) {
    const uint64_t some = count < 64 ? *from & ((uint64_t{1} << count) - 1) : *from;
    word[0] |= some << shift;
    // The next word exists if bits are left for it.
    if (shift != 0 && count > 64 - shift) word[1] |= some >> (64 - shift);
  }
}

}  // namespace lacuna
