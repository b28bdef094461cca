// The selections of N:M sparsity in plain C++: see nm_selection.h.
#pragma once

#include <bit>
#include <cmath>

#include "lacuna/framework/kernels/transposable_patterns.h"

namespace lacuna::reference {

/// Orders |w|, NaN being −1.
inline int32_t magnitude_key(float w) {
  const uint32_t bits = std::bit_cast<uint32_t>(w) & 0x7fffffffu;
  return bits > 0x7f800000u ? -1 : static_cast<int32_t>(bits);
}

/// The bits of the n largest of m.
inline uint32_t select_of_group(const float* w, int n, int m) {
  uint32_t kept = 0;
  for (int i = 0; i < m; ++i) {
    int before = 0;  // how many come before it
    for (int j = 0; j < m; ++j) {
      const int32_t mine = magnitude_key(w[i]), other = magnitude_key(w[j]);
      before += other > mine || (other == mine && j < i) ? 1 : 0;
    }
    if (before < n) kept |= 1u << i;
  }
  return kept;
}

/// A tile of 4 × 4, four bits a row.
inline uint32_t select_greedily(const float* w, int64_t stride) {
  uint32_t kept = 0, open = 0xffff;
  while (open != 0) {
    int best = -1;
    for (int i = 0; i < 16; ++i) {
      if ((open >> i & 1) == 0) continue;
      const auto key = [&](int at) { return magnitude_key(w[at / 4 * stride + at % 4]); };
      if (best < 0 || key(i) > key(best)) best = i;
    }
    const uint32_t row = 0xfu << (best / 4 * 4), column = 0x1111u << (best % 4);
    open &= ~(1u << best);
    if ((kept & row) != 0) open &= ~row;
    if ((kept & column) != 0) open &= ~column;
    kept |= 1u << best;
  }
  return kept;
}

inline uint32_t select_exactly(const float* w, int64_t stride) {
  PairSums pairs = {};
  for (size_t r = 0; r < 4; ++r) {
    for (size_t k = 0; k < 6; ++k) {
      for (int64_t c = 0; c < 4; ++c) {
        const float a = std::abs(w[static_cast<int64_t>(r) * stride + c]);
        if ((kColumnPairs[k] >> c & 1) != 0 && !std::isnan(a)) pairs[r][k] += a;
      }
    }
  }
  return best_pattern(pairs, 0);
}

}  // namespace lacuna::reference
