// Draws: consecutive numbers below a bound from a generator, computed many at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lacuna/framework/core/random.h"

namespace lacuna {

/// words[i] = the words 1 (high) and 0 (low) of the generator's block first + i: the number that
/// `CounterRng::below` reduces.
void draw_words(const CounterRng& rng, uint64_t first, std::span<uint64_t> words);

/// words[4 i … 4 i + 3] = the generator's block numbers[i]. *Cost:* about 2 ns a block, where
/// `CounterRng::block` takes 13.
void draw_blocks(const CounterRng& rng, std::span<const uint64_t> numbers,
                 std::span<uint32_t> words);

/// Block i of the words that draw_blocks has written.
inline std::span<const uint32_t, 4> drawn_block(std::span<const uint32_t> words, size_t i) {
  return words.subspan(4 * i).first<4>();
}

/// The words rng.bits(0), rng.bits(1), … *Cost:* about 1 ns each, where `bits` takes 13.
class DrawnWords {
 public:
  explicit DrawnWords(const CounterRng& rng) : rng_(rng) {}

  uint32_t next() {
    if (next_ == kBuffer) refill();
    return words_[next_++];
  }

 private:
  static constexpr size_t kBuffer = 128;

  void refill();

  CounterRng rng_;
  std::array<uint32_t, kBuffer> words_;
  uint64_t block_ = 0;  // the first that words_ has not had
  size_t next_ = kBuffer;
};

/// The numbers rng.below(0, ·), rng.below(1, ·), … *Cost:* about 3 ns each, where `below` takes 20.
class Draws {
 public:
  explicit Draws(const CounterRng& rng) : rng_(rng) {}

  /// *Requires* bound > 0.
  uint64_t below(uint64_t bound) {
    if (next_ == kBuffer) refill();
    if (bound != bound_) set_bound(bound);
    const uint64_t word = words_[next_++];
    if (word >= limit_) [[unlikely]]  // it would be rejected: a chance of bound / 2⁶⁴
      return rng_.below(first_ + next_ - 1, bound);
    return is_power_of_two_ ? word & (bound - 1) : word % bound;
  }

 private:
  static constexpr uint64_t kBuffer = 512;

  void refill();
  void set_bound(uint64_t bound);

  CounterRng rng_;
  std::array<uint64_t, kBuffer> words_;  // of first_ and the following blocks
  uint64_t first_ = 0 - kBuffer, next_ = kBuffer;
  uint64_t bound_ = 0, limit_ = 0;
  bool is_power_of_two_ = false;
};

}  // namespace lacuna
