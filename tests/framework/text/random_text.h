// Text of random code points, and random bytes: a pure function of a seed.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/text/unicode.hpp"

namespace lacuna {

/// Code points of all planes, ASCII and white space among them often, no surrogates.
inline std::string random_text(uint64_t seed, int length) {
  const CounterRng rng(seed, "random_text");
  constexpr std::array<char32_t, 6> kFrequent = {' ', ' ', '\n', '\'', U'\u00e9', U'\u4e2d'};
  std::string text;
  for (int i = 0; i < length; ++i) {
    const uint64_t at = 3 * static_cast<uint64_t>(i);
    const uint64_t kind = rng.below(at, 4);
    char32_t code = static_cast<char32_t>(rng.below(at + 1, 128));
    if (kind == 0) code = kFrequent[rng.below(at + 1, kFrequent.size())];
    if (kind == 1) code = static_cast<char32_t>(rng.below(at + 1, 0x110000));
    if (0xD800 <= code && code <= 0xDFFF) code -= 0x800;
    unicode::append(text, code);
  }
  return text;
}

inline std::string random_bytes(uint64_t seed, int length) {
  const CounterRng rng(seed, "random_bytes");
  std::string bytes;
  for (int i = 0; i < length; ++i) {
    bytes += static_cast<char>(rng.below(static_cast<uint64_t>(i), 256));
  }
  return bytes;
}

}  // namespace lacuna
