#include "lacuna/framework/kernels/attention/attention_step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lacuna/framework/core/parallel.h"

namespace lacuna {
namespace {

// In eight sums, which the compiler keeps in a vector.
float dot(const float* a, const float* b, int64_t count) {
  std::array<float, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) {
      sums[lane] += a[i + static_cast<int64_t>(lane)] * b[i + static_cast<int64_t>(lane)];
    }
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void attend_head(const AttentionStep& s, int64_t head, float* weights, float* y) {
  const int64_t d = s.head_features, row = s.kv_heads * d;
  const float* q = s.queries + head * d;
  const int64_t column = head * s.kv_heads / s.heads * d;
  for (int64_t k = 0; k < s.seen; ++k) weights[k] = s.scale * dot(q, s.keys + k * row + column, d);
  const float largest = *std::max_element(weights, weights + s.seen);
  double total = 0.0;
  for (int64_t k = 0; k < s.seen; ++k) {
    weights[k] = std::exp(weights[k] - largest);
    total += weights[k];
  }
  std::fill_n(y, d, 0.0f);
  for (int64_t k = 0; k < s.seen; ++k) {
    const auto weight = static_cast<float>(weights[k] / total);
    const float* value = s.values + k * row + column;
    for (int64_t j = 0; j < d; ++j) y[j] += weight * value[j];
  }
}

}  // namespace

void attend(const AttentionStep& step, float* y) {
  const int64_t work = std::max<int64_t>(1, step.seen * step.head_features);
  parallel_for(step.heads, std::max<int64_t>(1, (1 << 14) / work), [&](int64_t begin, int64_t end) {
    std::vector<float> weights(static_cast<size_t>(step.seen));
    for (int64_t head = begin; head < end; ++head) {
      attend_head(step, head, weights.data(), y + head * step.head_features);
    }
  });
}

}  // namespace lacuna
