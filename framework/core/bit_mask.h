// BitMask: one bit for each element of a tensor, the form in which masks are kept.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/bit_words.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

/// `size` bits in 64-bit words; bit i of the tensor is bit i % 64 of word i / 64. Bits past the end
/// are always zero.
class BitMask {
 public:
  BitMask() = default;
  /// All bits zero, or all one.
  static BitMask zeros(int64_t size) { return BitMask(size, 0); }
  static BitMask ones(int64_t size) { return BitMask(size, ~uint64_t{0}); }
  /// From bytes: nonzero is one.
  static BitMask from_bytes(std::span<const uint8_t> bytes) {
    BitMask mask = zeros(static_cast<int64_t>(bytes.size()));
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != 0) mask.set(static_cast<int64_t>(i));
    }
    return mask;
  }
  /// From words, whose bits past the end are dropped. *Errors:* ShapeError when their number is not
  /// that of `size` bits.
  static BitMask from_words(int64_t size, std::vector<uint64_t> words);

  int64_t size() const { return size_; }
  bool test(int64_t i) const { return (words_[word(i)] >> (i & 63) & 1) != 0; }
  void set(int64_t i) { words_[word(i)] |= uint64_t{1} << (i & 63); }
  void reset(int64_t i) { words_[word(i)] &= ~(uint64_t{1} << (i & 63)); }
  /// Number of ones.
  int64_t count() const {
    int64_t ones = 0;
    for (const uint64_t w : words_) ones += count_ones(w);
    return ones;
  }
  std::span<const uint64_t> words() const { return words_; }
  /// Sets the ones of `bits` in a word; returns how many of them were not set. *Requires* none past
  /// the end.
  int64_t set_in_word(int64_t word, uint64_t bits) {
    uint64_t& mine = words_[static_cast<size_t>(word)];
    const uint64_t fresh = bits & ~mine;
    mine |= bits;
    return fresh == 0 ? 0 : count_ones(fresh);
  }
  /// Sets a bit; returns whether it was not set. Without a branch: for bits that come at random.
  bool insert(int64_t i) {
    uint64_t& mine = words_[word(i)];
    const uint64_t old = mine;
    mine = old | uint64_t{1} << (i & 63);
    return (old >> (i & 63) & 1) == 0;
  }
  std::vector<uint8_t> to_bytes() const {
    std::vector<uint8_t> bytes(static_cast<size_t>(size_));
    for (int64_t i = 0; i < size_; ++i) bytes[static_cast<size_t>(i)] = test(i) ? 1 : 0;
    return bytes;
  }
  /// Calls `visit(index)` for each one, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t rest = words_[w]; rest != 0; rest &= rest - 1) {
        visit(static_cast<int64_t>(w * 64) + std::countr_zero(rest));
      }
    }
  }
  friend bool operator==(const BitMask&, const BitMask&) = default;
  /// Bits that two masks of one size have in common.
  friend int64_t count_common(const BitMask& a, const BitMask& b) {
    int64_t common = 0;
    for (size_t w = 0; w < a.words_.size(); ++w) common += count_ones(a.words_[w] & b.words_[w]);
    return common;
  }

 private:
  BitMask(int64_t size, uint64_t fill) : size_(size), words_(word_count(size), fill) {
    clear_rest();
  }
  void clear_rest() {
    if (size_ % 64 != 0) words_.back() &= (uint64_t{1} << (size_ % 64)) - 1;
  }
  static size_t word_count(int64_t size) {
    if (size < 0) throw ShapeError("a mask cannot have a negative size");
    return static_cast<size_t>((size + 63) / 64);
  }
  static size_t word(int64_t i) { return static_cast<size_t>(i >> 6); }

  int64_t size_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace lacuna
