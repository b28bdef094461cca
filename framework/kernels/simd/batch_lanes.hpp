// Sums of the rows of an output gradient over its batch, the gradient of a bias. A weight gradient
// computes them while it reads the rows, so they cost no separate pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Sixteen partial sums of each row over the slabs: vectors are added, and reduced once at the end.
class BatchLanes {
 public:
  static constexpr int64_t kLanes = 16;

  /// `into`: the sums [rows]; null if they are not needed. `parts`: of the batch, each with its own
  /// partial sums.
  BatchLanes(float* into, int64_t rows, int64_t parts = 1)
      : into_(into),
        rows_(rows),
        parts_(parts),
        lanes_(into == nullptr ? 0 : static_cast<size_t>(parts * rows * kLanes)) {}

  /// Makes a part's partial sums of rows [first, end) zero. Returns those of row 0, or null.
  float* begin(int64_t first, int64_t end, int64_t part = 0) {
    if (into_ == nullptr) return nullptr;
    float* lanes = lanes_.data() + part * rows_ * kLanes;
    std::fill(lanes + first * kLanes, lanes + end * kLanes, 0.0f);
    return lanes;
  }
  /// Writes the sums of rows [first, end) over all parts.
  void end(int64_t first, int64_t end) {
    if (into_ == nullptr) return;
    for (int64_t row = first; row < end; ++row) {
      double sum = 0.0;
      for (int64_t part = 0; part < parts_; ++part) {
        const float* lanes = lanes_.data() + (part * rows_ + row) * kLanes;
        for (int64_t i = 0; i < kLanes; ++i) sum += lanes[i];
      }
      into_[row] = static_cast<float>(sum);
    }
  }

 private:
  float* into_;
  int64_t rows_, parts_;
  Array<float> lanes_;
};

namespace reference {

/// Adds `width` examples of rows [first, end) of a slab to their partial sums.
inline void add_to_lanes(const float* slab, int64_t first, int64_t end, int64_t width,
                         float* lanes) {
  for (int64_t row = first; row < end; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      lanes[row * BatchLanes::kLanes + i % BatchLanes::kLanes] += slab[row * kSlabWidth + i];
    }
  }
}

}  // namespace reference
}  // namespace lacuna
