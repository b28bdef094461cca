// Scores of units in plain C++, to check the vectorized ones: see block_scores.hpp.
#pragma once

#include <cmath>

#include "lacuna/framework/kernels/select/block_scores.hpp"

namespace lacuna::reference {

/// Scores of `count` units side by side, whose rows are `stride` apart.
inline void unit_scores(const PatternShape& pattern, const float* weights, int64_t stride,
                        int64_t count, float* scores) {
  const bool is_sum = pattern.norm() == PatternShape::Norm::L1;
  for (int64_t t = 0; t < count; ++t) {
    double sum = 0.0;
    for (int64_t r = 0; r < pattern.unit_rows(); ++r) {
      for (int64_t c = 0; c < pattern.unit_columns(); ++c) {
        const double w = weights[r * stride + t * pattern.unit_columns() + c];
        sum += is_sum ? std::abs(w) : w * w;
      }
    }
    scores[t] = static_cast<float>(is_sum ? sum : std::sqrt(sum));
  }
}

}  // namespace lacuna::reference
