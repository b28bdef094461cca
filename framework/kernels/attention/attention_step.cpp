// A head's keys and values are stored row by row, in the order in which they were appended. Vectors
// cover the features, and a row's products are reduced. Bound by reading keys and values.
#include "lacuna/framework/kernels/attention/attention_step.hpp"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/attention/attention_step.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/exponential.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

HWY_INLINE float dot_product(const float* a, const float* b, int64_t count) {
  const Floats d;
  const int64_t lanes = lane_count();
  Vector sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  }
  if (i < count) {
    sum = hn::MulAdd(load_part(a + i, count - i), load_part(b + i, count - i), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void attend_head(const AttentionStep& s, int64_t head, float* weights, float* y) {
  const int64_t count = s.head_features, row = s.kv_heads * count;
  const float* q = s.queries + head * count;
  const int64_t column = head * s.kv_heads / s.heads * count;
  for (int64_t k = 0; k < s.seen; ++k) {
    weights[k] = s.scale * dot_product(q, s.keys + k * row + column, count);
  }
  const Vector largest = constant(max_of(s.seen, weights));
  map([=](Vector v) HWY_ATTR { return quick_exp(hn::Sub(v, largest)); }, s.seen, weights, weights);
  const double total = sum_of([](Vector v) HWY_ATTR { return v; }, s.seen, weights);
  std::fill_n(y, count, 0.0f);
  for (int64_t k = 0; k < s.seen; ++k) {
    const Vector weight = constant(weights[k] / total);
    map([=](Vector sum, Vector value) HWY_ATTR { return hn::MulAdd(weight, value, sum); }, count, y,
        y, s.values + k * row + column);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(attend_head);

void attend_head_plainly(const AttentionStep& s, int64_t head, float* weights, float* y) {
  const int64_t d = s.head_features, row = s.kv_heads * d;
  const int64_t column = head * s.kv_heads / s.heads * d;
  for (int64_t k = 0; k < s.seen; ++k) {
    float sum = 0.0f;
    for (int64_t i = 0; i < d; ++i) sum += s.queries[head * d + i] * s.keys[k * row + column + i];
    weights[k] = s.scale * sum;
  }
  const float largest = *std::max_element(weights, weights + s.seen);
  double total = 0.0;
  for (int64_t k = 0; k < s.seen; ++k) {
    weights[k] = std::exp(weights[k] - largest);
    total += weights[k];
  }
  std::fill_n(y, d, 0.0f);
  for (int64_t k = 0; k < s.seen; ++k) {
    const auto weight = static_cast<float>(weights[k] / total);
    for (int64_t i = 0; i < d; ++i) y[i] += weight * s.values[k * row + column + i];
  }
}

}  // namespace

void attend(const AttentionStep& step, float* y) {
  const auto run =
      use_reference_kernels() ? attend_head_plainly : HWY_DYNAMIC_DISPATCH(attend_head);
  const int64_t work = std::max<int64_t>(1, step.seen * step.head_features);
  parallel_for(step.heads, std::max<int64_t>(1, (1 << 14) / work), [&](int64_t begin, int64_t end) {
    Array<float> weights(static_cast<size_t>(step.seen));
    for (int64_t head = begin; head < end; ++head) {
      run(step, head, weights.data(), y + head * step.head_features);
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
