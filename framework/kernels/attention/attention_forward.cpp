// One head's forward pass: for each 64 queries, a loop over blocks of keys computes scores, the
// running maximum and sum of each query, and y = rescaled y + values · weights. A block's weights
// are 16 to 20 KiB. Products run in registers: scores four keys × 64 queries at a time, sums eight
// features × 32 queries.
#include <cmath>
#include <limits>

#include "lacuna/framework/kernels/attention/attention_head.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/attention/attention_forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/attention/attention_edge.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// The largest logit of a query before its first visible key: below any computed logit, but finite,
// so that the difference of two is a number.
constexpr float kNoLogit = -3.0e38f;

// For the queries so far: the largest logit, and the sum of e^(logit − largest).
struct RunningSums {
  HWY_ALIGN float largest[kAttentionBlock];
  HWY_ALIGN float totals[kAttentionBlock];

  RunningSums() {
    std::fill_n(largest, kAttentionBlock, kNoLogit);
    std::fill_n(totals, kAttentionBlock, 0.0f);
  }
};

HWY_INLINE void scale_lanes(const AttentionHead& head, Vector factor, float* y, int64_t row) {
  const Floats d;
  for (int64_t f = 0; f < head.features; ++f) {
    hn::StoreU(hn::Mul(factor, hn::LoadU(d, y + f * row)), d, y + f * row);
  }
}

// Converts a block's scores to weights, and rescales sums computed with a smaller maximum.
template <bool kDrop>
void weigh(const AttentionHead& head, const BlockPlace& place, bool is_first, const float* factors,
           float* matrix, RunningSums& sums, float* y, int64_t y_row) {
  const Floats d;
  const Vector scale = constant(head.scale);
  for (int64_t v = 0; v < place.vectors; ++v) {
    const int64_t lane = v * lane_count();
    float* column = matrix + lane;
    const Vector before = hn::Load(d, sums.largest + lane);
    Vector largest = before;
    const auto raise = [&](int64_t key, auto seen) HWY_ATTR {
      const Vector logit = hn::Mul(hn::LoadU(d, column + key * kAttentionBlock), scale);
      largest = where_seen(seen, hn::Max(largest, logit), largest);
    };
    for_each_key(head, place, v, raise, [](int64_t) {});
    Vector total = hn::Zero(d);
    const auto weigh_key = [&](int64_t key, auto seen) HWY_ATTR {
      float* at = column + key * kAttentionBlock;
      const Vector power = quick_exp(hn::MulSub(hn::LoadU(d, at), scale, largest));
      const Vector weight = where_seen(seen, power, hn::Zero(d));
      total = hn::Add(total, weight);
      if constexpr (kDrop) {
        const Vector factor = hn::LoadU(d, factors + lane + key * kAttentionBlock);
        hn::StoreU(where_seen(seen, hn::Mul(weight, factor), hn::Zero(d)), d, at);
      } else {
        hn::StoreU(weight, d, at);
      }
    };
    for_each_key(head, place, v, weigh_key, [&](int64_t key) HWY_ATTR {
      hn::StoreU(hn::Zero(d), d, column + key * kAttentionBlock);
    });
    if (!is_first) {
      const Vector factor = quick_exp(hn::Sub(before, largest));
      total = hn::MulAdd(hn::Load(d, sums.totals + lane), factor, total);
      scale_lanes(head, factor, y + lane, y_row);
    }
    hn::Store(largest, d, sums.largest + lane);
    hn::Store(total, d, sums.totals + lane);
  }
}

void add_block(const AttentionHead& head, const BlockPlace& place, bool is_first,
               const AttentionForward& arrays, float* matrix, float* factors, RunningSums& sums) {
  const int64_t q = place.q0 / kAttentionBlock, k = place.k0 / kAttentionBlock;
  scores(head, place, arrays.k.at(k), arrays.k.row, arrays.q.at(q), arrays.q.row, matrix,
         arrays.ahead);
  if (head.dropout > 0.0) {
    draw_factors(head, place, factors);
    weigh<true>(head, place, is_first, factors, matrix, sums, arrays.y.at(q), arrays.y.row);
  } else {
    weigh<false>(head, place, is_first, nullptr, matrix, sums, arrays.y.at(q), arrays.y.row);
  }
  const auto add = is_first ? weighed_sums<false> : weighed_sums<true>;
  add(head, place, arrays.v.at(k), arrays.v.row, matrix, arrays.y.at(q), arrays.y.row,
      arrays.ahead);
}

// A query without a visible key has a sum of 0: its y is 0 and its lse +∞.
void finish(const AttentionHead& head, RunningSums& sums, int64_t queries, float* y, int64_t row,
            float* lse) {
  const Floats d;
  for (int64_t lane = 0; lane < queries; lane += lane_count()) {
    const Vector total = hn::Load(d, sums.totals + lane);
    const auto has_none = hn::Eq(total, hn::Zero(d));
    const Vector inverse = hn::Div(constant(1.0), total);
    scale_lanes(head, hn::IfThenZeroElse(has_none, inverse), y + lane, row);
    const Vector logarithm =
        hn::Add(hn::Load(d, sums.largest + lane), keep_nan(total, hn::Log(d, total)));
    const Vector infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    hn::Store(hn::IfThenElse(has_none, infinity, logarithm), d, sums.totals + lane);
  }
  std::copy_n(sums.totals, queries, lse);
}

// The queries of the edge: one row of weights each.
void forward_edge(const AttentionHead& head, const AttentionForward& arrays) {
  EdgeRows rows;
  edge_scores(head, arrays.k, arrays.q, rows);
  const Vector scale = constant(head.scale);
  for (int64_t e = 0; e < head.edge(); ++e) {
    float* row = rows.at(e);
    map([=](Vector v) HWY_ATTR { return hn::Mul(v, scale); }, head.length, row, row);
    const float largest = max_of(head.length, row);
    const Vector center = constant(largest);
    map([=](Vector v) HWY_ATTR { return quick_exp(hn::Sub(v, center)); }, head.length, row, row);
    const double total = sum_of([](Vector v) HWY_ATTR { return v; }, head.length, row);
    const int64_t token = head.block_tokens() + e;
    edge_sums<false>(head, arrays.v, row, static_cast<float>(1.0 / total), arrays.y.data + token,
                     arrays.y.row);
    arrays.lse[token] = static_cast<float>(largest + std::log(total));
  }
}

void forward_head(const AttentionHead& head, const AttentionForward& arrays) {
  HWY_ALIGN BlockMatrix matrix, factors;
  for (int64_t q = 0; q < head.query_blocks(); ++q) {
    RunningSums sums;
    bool is_first = true;
    for (int64_t k = 0; k < head.key_blocks(); ++k) {
      const BlockPlace place(head, q, k);
      if (!place.is_visible()) break;
      if (!sees_any(head, place)) continue;
      add_block(head, place, is_first, arrays, matrix, factors, sums);
      is_first = false;
    }
    const int64_t q0 = q * kAttentionBlock,
                  queries = std::min(kAttentionBlock, head.block_tokens() - q0);
    if (is_first) clear_lanes(head, arrays.y.at(q), arrays.y.row, queries);
    finish(head, sums, queries, arrays.y.at(q), arrays.y.row, arrays.lse + q0);
  }
  if (head.edge() > 0) forward_edge(head, arrays);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(forward_head);

}  // namespace

AttentionForwardKernel attention_forward_kernel() { return HWY_DYNAMIC_DISPATCH(forward_head); }

}  // namespace lacuna
#endif  // HWY_ONCE
