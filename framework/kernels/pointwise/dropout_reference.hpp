// Dropout in plain C++ on any value type.
#pragma once

#include <cmath>
#include <cstdint>

#include "lacuna/framework/kernels/pointwise/dropout.hpp"

namespace lacuna::reference {

/// The element is dropped if the upper 24 bits of its random word are below this.
inline uint32_t dropout_threshold(double p) {
  return static_cast<uint32_t>(std::lround(p * 0x1.0p24));
}

/// y[i] = x[i] · (dropped ? 0 : factor), with one random word per element.
template <class T>
void apply_dropout(const uint32_t* words, uint32_t threshold, T factor, const T* x, T* y,
                   int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * (words[i] >> 8 < threshold ? T(0) : factor);
}

/// Bit i: whether element i is kept.
inline void kept_bits(const uint32_t* words, uint32_t threshold, uint64_t* bits, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (i % 64 == 0) bits[i / 64] = 0;
    bits[i / 64] |= uint64_t{words[i] >> 8 >= threshold} << (i % 64);
  }
}

/// Row-major [rows, features].
template <class T>
void dropout(const DropoutMask& mask, int64_t rows, int64_t features, const T* x, T* y) {
  const auto blocks = static_cast<uint64_t>((features + 3) / 4);
  for (int64_t i = 0; i < rows * features; ++i) {
    const auto row = static_cast<uint64_t>(mask.first_row + i / features),
               column = static_cast<uint64_t>(i % features);
    const uint32_t word = mask.rng.block(row * blocks + column / 4)[column % 4];
    apply_dropout(&word, dropout_threshold(mask.p), T(1.0 / (1.0 - mask.p)), x + i, y + i, 1);
  }
}

}  // namespace lacuna::reference
