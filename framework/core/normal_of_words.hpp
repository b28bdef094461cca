// A standard normal number from two uniform words.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace lacuna {

/// Box and Muller's transform, in double precision.
inline double normal_of_words(uint32_t word0, uint32_t word1) {
  const double u = (word0 + 0.5) * 0x1.0p-32, v = word1 * 0x1.0p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace lacuna
