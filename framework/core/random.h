// Random numbers as pure functions of (seed, name, stream, index): no state, no call order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace lacuna {

/// 64-bit FNV-1a hash of a name, the same on every machine.
uint64_t hash_name(std::string_view name);

/// Four 32-bit words from a 128-bit counter and a 64-bit key. *Source:* Philox4x32-10, Salmon et
/// al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A counter-based generator. Every number is a function of the seed, a name (of a parameter, a
/// layer, a loader), a stream (a step, an epoch) and its index, so it does not depend on call
/// order, layout, number of threads or a resume.
class CounterRng {
 public:
  CounterRng(uint64_t seed, std::string_view name, uint64_t stream = 0);

  const std::array<uint32_t, 2>& key() const { return key_; }
  uint64_t stream() const { return stream_; }
  /// Words 4·block … 4·block + 3 of the sequence.
  std::array<uint32_t, 4> block(uint64_t block) const;
  /// Word `index` of the sequence: uniform over 32 bits.
  uint32_t bits(uint64_t index) const;
  /// Uniform in [0, 1), a multiple of 2⁻²⁴.
  float uniform(uint64_t index) const;
  /// The `uniform` that a word of the sequence gives.
  static float uniform_of(uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24f; }
  /// Standard normal, by Box and Muller's transform in double precision. Uses block `index`, as
  /// `below` does: draw words, normal numbers and integers from generators of different names.
  double normal(uint64_t index) const;
  /// Uniform over [0, bound) from two 64-bit draws: the second is used if the first must be
  /// rejected, so a value's probability is off by less than 2⁻⁶⁴ · bound / 2⁶⁴. Uses block `index`.
  /// *Requires* bound > 0.
  uint64_t below(uint64_t index, uint64_t bound) const;
  /// The `below` that a block of the sequence gives. *Requires* bound > 0.
  static uint64_t below_of(std::span<const uint32_t, 4> block, uint64_t bound);

 private:
  std::array<uint32_t, 2> key_;
  uint64_t stream_;
};

}  // namespace lacuna
