// One head's backward pass: the weights p of a block are made anew from the rows' lse, then with
// the factors f of dropout and D = dy · y of each row
//   dp = dy vᵀ,  ds = scale p (f dp − D),  dv += (f p)ᵀ dy,  dq += ds k,  dk += dsᵀ q,
// five products of 64 × 64 × d in registers. Three blocks of weights are 48 KiB on the stack.
#include <cmath>

#include "lacuna/framework/kernels/attention/attention_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/attention/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/attention/attention_block.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

struct Blocks {
  HWY_ALIGN float weights[kAttentionBlock * kAttentionBlock];  // p, then f p
  HWY_ALIGN float slopes[kAttentionBlock * kAttentionBlock];   // dp, then ds
};

// p and dp of a row → f p and ds.
HWY_INLINE void slope_row(const AttentionHead& head, const BlockPlace& place, int64_t r, float lse,
                          float projection, float* weights, float* slopes) {
  const int64_t visible = place.visible(head, r);
  scale_row(head, place, visible, weights);
  const Vector center = constant(lse), d = constant(projection), scale = constant(head.scale);
  map([=](Vector v) HWY_ATTR { return exp(hn::Sub(v, center)); }, visible, weights, weights);
  const auto slope = [=](Vector p, Vector dp)
                         HWY_ATTR { return hn::Mul(hn::Mul(p, scale), hn::Sub(dp, d)); };
  if (head.dropout > 0.0) {
    drop_weights(head, place, r, visible, slopes, slopes);
    map(slope, visible, slopes, weights, slopes);
    drop_weights(head, place, r, visible, weights, weights);
  } else {
    map(slope, visible, slopes, weights, slopes);
  }
  std::fill(weights + visible, weights + place.keys_padded, 0.0f);
  std::fill(slopes + visible, slopes + place.keys_padded, 0.0f);
}

// to[keys, features] += matrixᵀ rows, over the block's queries.
HWY_INLINE void add_transposed(const AttentionHead& head, const BlockPlace& place,
                               const float* matrix, const float* rows, float* to) {
  small_product<true>({.m = (place.keys + 7) / 8 * 8,
                       .n = head.stride,
                       .k = place.queries,
                       .a = matrix,
                       .a_row = 1,
                       .a_column = kAttentionBlock,
                       .b = rows + place.q0 * head.stride,
                       .b_row = head.stride,
                       .c = to + place.k0 * head.stride,
                       .c_row = head.stride});
}

void add_block(const AttentionHead& head, const BlockPlace& place, const AttentionBackward& arrays,
               const float* projections, Blocks& blocks) {
  query_products(head, place, arrays.q, arrays.k_transposed, blocks.weights);
  query_products(head, place, arrays.dy, arrays.v_transposed, blocks.slopes);
  for (int64_t r = 0; r < place.queries; ++r) {
    slope_row(head, place, r, arrays.lse[place.q0 + r], projections[r],
              blocks.weights + r * kAttentionBlock, blocks.slopes + r * kAttentionBlock);
  }
  add_transposed(head, place, blocks.weights, arrays.dy, arrays.dv);
  add_transposed(head, place, blocks.slopes, arrays.q, arrays.dk);
  small_product<true>({.m = place.queries_padded,
                       .n = head.stride,
                       .k = place.keys,
                       .a = blocks.slopes,
                       .a_row = kAttentionBlock,
                       .b = arrays.k + place.k0 * head.stride,
                       .b_row = head.stride,
                       .c = arrays.dq + place.q0 * head.stride,
                       .c_row = head.stride});
}

void backward_head(const AttentionHead& head, const AttentionBackward& arrays) {
  Blocks blocks;
  std::fill(arrays.dq, arrays.dq + head.size(), 0.0f);
  const auto multiply_vectors = [](Vector u, Vector v) HWY_ATTR { return hn::Mul(u, v); };
  for (int64_t q0 = 0; q0 < head.length; q0 += kAttentionBlock) {
    float projections[kAttentionBlock];
    const int64_t queries = std::min(kAttentionBlock, head.length - q0);
    for (int64_t r = 0; r < queries; ++r) {
      const int64_t row = (q0 + r) * head.stride;
      projections[r] = static_cast<float>(
          sum_of(multiply_vectors, head.stride, arrays.dy + row, arrays.y + row));
    }
    const int64_t end = key_end(head, q0);
    for (int64_t k0 = 0; k0 < end; k0 += kAttentionBlock) {
      const BlockPlace place(head, q0, k0);
      if (sees_any(head, place)) add_block(head, place, arrays, projections, blocks);
    }
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(backward_head);

void backward_reference(const AttentionHead& head, const AttentionBackward& a) {
  reference::attention_head_gradient<float>(head, a.q, a.k, a.v, a.y, a.lse, a.dy, a.dq, a.dk,
                                            a.dv);
}

}  // namespace

AttentionBackwardKernel attention_backward_kernel() {
  return use_reference_kernels() ? backward_reference : HWY_DYNAMIC_DISPATCH(backward_head);
}

}  // namespace lacuna
#endif  // HWY_ONCE
