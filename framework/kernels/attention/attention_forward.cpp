// One head's forward pass: for each 64 queries, over blocks of 64 keys: q kᵀ, the running maximum
// and sum of each row, y = rescaled y + weights v. What a block needs (16 KiB of weights, 64 rows
// each of q, kᵀ, v and y) stays in the second-level cache; products run in registers.
#include <cmath>
#include <limits>

#include "lacuna/framework/kernels/attention/attention_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/attention/attention_forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/attention/attention_block.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Of a row of queries so far: the largest logit, and the sum of e^(logit − largest).
struct RunningSum {
  float largest = kNone;
  double total = 0.0;
};

// Makes weights of a row's products, and scales what has been summed with a smaller maximum.
HWY_INLINE void add_row(const AttentionHead& head, const BlockPlace& place, int64_t r, float* row,
                        RunningSum& sum, float* y) {
  const int64_t visible = place.visible(head, r);
  scale_row(head, place, visible, row);
  const float largest = std::max(sum.largest, max_of(visible, row));
  if (largest == kNone) {
    // NaN is passed over by the maximum and must stay visible.
    map([](Vector v) HWY_ATTR { return exp(v); }, visible, row, row);
  } else {
    const Vector center = constant(largest);
    map([=](Vector v) HWY_ATTR { return exp(hn::Sub(v, center)); }, visible, row, row);
    if (sum.largest != largest) {
      const Vector factor = constant(std::exp(static_cast<double>(sum.largest) - largest));
      sum.total *= std::exp(static_cast<double>(sum.largest) - largest);
      map([=](Vector v) HWY_ATTR { return hn::Mul(v, factor); }, head.stride, y, y);
      sum.largest = largest;
    }
  }
  sum.total += sum_of([](Vector v) HWY_ATTR { return v; }, visible, row);
  if (head.dropout > 0.0) drop_weights(head, place, r, visible, row, row);
  std::fill(row + visible, row + place.keys_padded, 0.0f);
}

HWY_INLINE void finish_row(const AttentionHead& head, const RunningSum& sum, float* y, float* lse) {
  if (sum.total == 0.0) {  // no key is seen: y is 0 as it was made
    *lse = std::numeric_limits<float>::infinity();
    return;
  }
  const Vector factor = constant(1.0 / sum.total);
  map([=](Vector v) HWY_ATTR { return hn::Mul(v, factor); }, head.stride, y, y);
  *lse = static_cast<float>(sum.largest + std::log(sum.total));
}

void forward_head(const AttentionHead& head, const AttentionForward& arrays) {
  HWY_ALIGN float weights[kAttentionBlock * kAttentionBlock];
  std::fill(arrays.y, arrays.y + head.size(), 0.0f);
  for (int64_t q0 = 0; q0 < head.length; q0 += kAttentionBlock) {
    RunningSum sums[kAttentionBlock];
    float* y = arrays.y + q0 * head.stride;
    const int64_t end = key_end(head, q0);
    for (int64_t k0 = 0; k0 < end; k0 += kAttentionBlock) {
      const BlockPlace place(head, q0, k0);
      if (!sees_any(head, place)) continue;
      query_products(head, place, arrays.q, arrays.k_transposed, weights);
      for (int64_t r = 0; r < place.queries; ++r) {
        add_row(head, place, r, weights + r * kAttentionBlock, sums[r], y + r * head.stride);
      }
      small_product<true>({.m = place.queries_padded,
                           .n = head.stride,
                           .k = place.keys,
                           .a = weights,
                           .a_row = kAttentionBlock,
                           .b = arrays.v + k0 * head.stride,
                           .b_row = head.stride,
                           .c = y,
                           .c_row = head.stride});
    }
    const int64_t queries = std::min(kAttentionBlock, head.length - q0);
    for (int64_t r = 0; r < queries; ++r) {
      finish_row(head, sums[r], y + r * head.stride, arrays.lse + q0 + r);
    }
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(forward_head);

void forward_reference(const AttentionHead& head, const AttentionForward& a) {
  reference::attention_head<float>(head, a.q, a.k, a.v, a.y, a.lse);
}

}  // namespace

AttentionForwardKernel attention_forward_kernel() {
  return use_reference_kernels() ? forward_reference : HWY_DYNAMIC_DISPATCH(forward_head);
}

}  // namespace lacuna
#endif  // HWY_ONCE
