// Scores of tiles in plain C++, for checking the rest: see block_scores.h.
#pragma once

#include <cmath>

#include "lacuna/framework/kernels/select/block_scores.h"

namespace lacuna::reference {

/// Scores of `count` tiles side by side, whose rows are `stride` apart.
inline void tile_scores(TileNorm norm, const TileShape& tile, const float* weights, int64_t stride,
                        int64_t count, float* scores) {
  for (int64_t t = 0; t < count; ++t) {
    double sum = 0.0;
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int64_t c = 0; c < tile.columns; ++c) {
        const double w = weights[r * stride + t * tile.columns + c];
        sum += norm == TileNorm::L1 ? std::abs(w) : w * w;
      }
    }
    scores[t] = static_cast<float>(norm == TileNorm::L1 ? sum : std::sqrt(sum));
  }
}

}  // namespace lacuna::reference
