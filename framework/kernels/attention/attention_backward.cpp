// One head's backward pass: the weights p of a block are made anew from the queries' lse, then with
// the factors f of dropout and D = dy · y of each query
//   dp = v · dy,  ds = scale p (f dp − D),  dv += dy (f p)ᵀ,  dq += k ds,  dk += q dsᵀ,
// five products in registers. For dv and dk the lanes are keys: f p and ds are transposed, 3 % of
// the time. Four matrices of a block are 20 KiB each on the stack.
#include <cmath>

#include "lacuna/framework/kernels/attention/attention_head.hpp"
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
  HWY_ALIGN BlockMatrix weights;  // p, then f p
  HWY_ALIGN BlockMatrix slopes;   // dp, then ds
  HWY_ALIGN BlockMatrix factors;  // f
  HWY_ALIGN BlockMatrix turned;   // [queries][80 keys]
};

// What is known of a block's queries.
struct Queries {
  HWY_ALIGN float lse[kAttentionBlock];
  HWY_ALIGN float projections[kAttentionBlock];  // D

  Queries(const AttentionHead& head, const AttentionBackward& arrays, int64_t block) {
    const Floats d;
    const int64_t q0 = block * kAttentionBlock;
    const int64_t queries = std::min(kAttentionBlock, head.length - q0);
    std::fill(std::copy_n(arrays.lse + q0, queries, lse), lse + kAttentionBlock, 0.0f);
    const float* y = arrays.y.at(block);
    const float* dy = arrays.dy.at(block);
    for (int64_t lane = 0; lane < queries; lane += lane_count()) {
      Vector sum = hn::Zero(d);
      for (int64_t f = 0; f < head.features; ++f) {
        sum = hn::MulAdd(hn::LoadU(d, dy + f * arrays.dy.row + lane),
                         hn::LoadU(d, y + f * arrays.y.row + lane), sum);
      }
      hn::Store(sum, d, projections + lane);
    }
  }
};

// Scores and dp → f p and ds.
template <bool kDrop>
void make_slopes(const AttentionHead& head, const BlockPlace& place, const Queries& queries,
                 Blocks& blocks) {
  const Floats d;
  const Vector scale = constant(head.scale), zero = hn::Zero(d);
  for (int64_t v = 0; v < place.vectors; ++v) {
    const int64_t lane = v * lane_count();
    const Vector lse = hn::Load(d, queries.lse + lane);
    const Vector projection = hn::Load(d, queries.projections + lane);
    const auto slope = [&](int64_t key, auto seen) HWY_ATTR {
      const int64_t at = key * kAttentionBlock + lane;
      const Vector power = quick_exp(hn::MulSub(hn::LoadU(d, blocks.weights + at), scale, lse));
      const Vector p = where_seen(seen, power, zero);
      Vector dp = hn::LoadU(d, blocks.slopes + at), weight = p;
      if constexpr (kDrop) {
        const Vector factor = where_seen(seen, hn::LoadU(d, blocks.factors + at), zero);
        dp = hn::Mul(dp, factor);
        weight = hn::Mul(p, factor);
      }
      hn::StoreU(weight, d, blocks.weights + at);
      const Vector ds = hn::Mul(hn::Mul(p, scale), hn::Sub(dp, projection));
      hn::StoreU(where_seen(seen, ds, zero), d, blocks.slopes + at);
    };
    for_each_key(head, place, v, slope, [&](int64_t key) HWY_ATTR {
      hn::StoreU(zero, d, blocks.weights + key * kAttentionBlock + lane);
      hn::StoreU(zero, d, blocks.slopes + key * kAttentionBlock + lane);
    });
  }
}

// The first query of the block that a group of vectors of keys needs, which begins at `key`.
HWY_INLINE int64_t first_query(const BlockPlace& place, int64_t key) {
  const int64_t width = kGroup * lane_count();
  return std::max<int64_t>(0, key / width * width - place.offset);
}

// to[f][j] = or += Σ_i x[f][i] matrix[j][i] over the block's queries: the lanes are keys.
void add_to_keys(const AttentionHead& head, const BlockPlace& place, Transposition transpose,
                 const float* x, int64_t x_row, const float* matrix, float* turned, bool adds,
                 float* to, int64_t to_row) {
  constexpr int64_t kStrip = 16;
  for (int64_t key = 0; key < place.keys; key += kStrip) {
    const int64_t first = first_query(place, key);
    if (first >= place.queries) break;
    transpose(matrix + key * kAttentionBlock + first, kAttentionBlock,
              turned + first * kMostKeys + key, kMostKeys, kStrip, place.queries - first);
  }
  for (int64_t key = 0; key < place.keys; key += kGroup * lane_count()) {
    const int64_t first = std::min(first_query(place, key), place.queries);
    const int64_t left = (place.keys - key + lane_count() - 1) / lane_count();
    const LaneProduct product{.m = head.features,
                              .vectors = std::min(kGroup, left),
                              .k = place.queries - first,
                              .a = x + first,
                              .a_row = x_row,
                              .b = turned + first * kMostKeys + key,
                              .b_row = kMostKeys,
                              .c = to + key,
                              .c_row = to_row};
    if (adds) {
      lane_product<true>(product);
    } else {
      lane_product<false>(product);
    }
  }
}

// `adds_to_q`, `adds_to_k`: whether dq, and dk and dv, have been written for these queries or keys.
void add_block(const AttentionHead& head, const BlockPlace& place, const AttentionBackward& a,
               const Queries& queries, bool adds_to_q, bool adds_to_k, Blocks& blocks) {
  const int64_t q = place.q0 / kAttentionBlock, k = place.k0 / kAttentionBlock;
  scores(head, place, a.k.at(k), a.k.row, a.q.at(q), a.q.row, blocks.weights);
  scores(head, place, a.v.at(k), a.v.row, a.dy.at(q), a.dy.row, blocks.slopes);
  if (head.dropout > 0.0) {
    draw_factors(head, place, blocks.factors);
    make_slopes<true>(head, place, queries, blocks);
  } else {
    make_slopes<false>(head, place, queries, blocks);
  }
  add_to_keys(head, place, a.transpose, a.dy.at(q), a.dy.row, blocks.weights, blocks.turned,
              adds_to_k, a.dv.at(k), a.dv.row);
  const auto add = adds_to_q ? weighed_sums<true> : weighed_sums<false>;
  add(head, place, a.k.at(k), a.k.row, blocks.slopes, a.dq.at(q), a.dq.row);
  add_to_keys(head, place, a.transpose, a.q.at(q), a.q.row, blocks.slopes, blocks.turned, adds_to_k,
              a.dk.at(k), a.dk.row);
}

void backward_head(const AttentionHead& head, const AttentionBackward& arrays) {
  Blocks blocks;
  for (int64_t q = 0; q < head.query_blocks(); ++q) {
    const Queries queries(head, arrays, q);
    bool adds_to_q = false;
    for (int64_t k = 0; k < head.key_blocks(); ++k) {
      const BlockPlace place(head, q, k);
      if (!place.is_visible()) break;
      const bool adds_to_k = arrays.adds || q > (head.causal ? k : 0);
      if (sees_any(head, place)) {
        add_block(head, place, arrays, queries, adds_to_q, adds_to_k, blocks);
        adds_to_q = true;
      } else if (!adds_to_k) {
        clear_lanes(head, arrays.dk.at(k), arrays.dk.row, place.keys);
        clear_lanes(head, arrays.dv.at(k), arrays.dv.row, place.keys);
      }
    }
    const int64_t left = std::min(kAttentionBlock, head.length - q * kAttentionBlock);
    if (!adds_to_q) clear_lanes(head, arrays.dq.at(q), arrays.dq.row, left);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(backward_head);

}  // namespace

AttentionBackwardKernel attention_backward_kernel() { return HWY_DYNAMIC_DISPATCH(backward_head); }

}  // namespace lacuna
#endif  // HWY_ONCE
