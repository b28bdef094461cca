// One head's backward pass: the weights p of a block are recomputed from the queries' lse, then
// with the factors f of dropout and D = dy · y of each query
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

#include "lacuna/framework/kernels/attention/attention_edge.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

struct Blocks {
  HWY_ALIGN BlockMatrix weights;                                      // p, then f p
  HWY_ALIGN BlockMatrix slopes;                                       // dp, then ds
  HWY_ALIGN BlockMatrix factors;                                      // f
  HWY_ALIGN float turned[(kAttentionBlock + kMostEdge) * kMostKeys];  // [queries][80 keys]
};

// p or ds for the edge's queries and all keys, and for all queries and the edge's keys.
struct EdgeMatrix {
  EdgeRows of_queries, of_keys;

  // Copies a block's values for the edge's keys, which are in its last rows.
  void take(const BlockPlace& place, const float* matrix) {
    for (int64_t e = 0; e < place.keys - place.key_lanes; ++e) {
      std::copy_n(matrix + (place.key_lanes + e) * kAttentionBlock, place.queries,
                  of_keys.at(e) + place.q0);
    }
  }
  // Copies the queries and keys of the edge.
  void take_corner(const AttentionHead& head) {
    const int64_t first = head.block_tokens();
    for (int64_t query = 0; query < head.edge(); ++query) {
      for (int64_t key = 0; key < head.edge(); ++key) {
        of_keys.at(key)[first + query] = of_queries.at(query)[first + key];
      }
    }
  }
};

struct Edge {
  EdgeMatrix weights, slopes;
};

// The data of a block's queries.
struct Queries {
  HWY_ALIGN float lse[kAttentionBlock];
  HWY_ALIGN float projections[kAttentionBlock];  // D

  Queries(const AttentionHead& head, const AttentionBackward& arrays, int64_t block) {
    const Floats d;
    const int64_t q0 = block * kAttentionBlock;
    const int64_t queries = std::min(kAttentionBlock, head.block_tokens() - q0);
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

// Converts scores and dp to f p and ds.
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

// The first query of the block that a group of vectors of keys, beginning at `key`, needs.
HWY_INLINE int64_t first_query(const BlockPlace& place, int64_t key) {
  const int64_t width = kGroup * lane_count();
  return std::max<int64_t>(0, key / width * width - place.offset);
}

// to[f][j] = or += Σ_i x[f][i] matrix[j][i] over the block's queries and, in the last block, those
// of the edge: the lanes are keys.
void add_to_keys(const AttentionHead& head, const BlockPlace& place, Transposition transpose,
                 const float* x, int64_t x_row, const float* matrix, const EdgeMatrix& edge,
                 float* turned, bool adds, float* to, int64_t to_row, AskedAhead* ahead) {
  constexpr int64_t kStrip = 16;
  for (int64_t key = 0; key < place.key_lanes; key += kStrip) {
    const int64_t first = first_query(place, key);
    if (first >= place.queries) break;
    transpose(matrix + key * kAttentionBlock + first, kAttentionBlock,
              turned + first * kMostKeys + key, kMostKeys, kStrip, place.queries - first);
  }
  int64_t queries = place.queries;
  if (place.q0 + place.queries == head.block_tokens()) {
    for (int64_t e = 0; e < head.edge(); ++e, ++queries) {
      std::copy_n(edge.of_queries.at(e) + place.k0, place.key_lanes, turned + queries * kMostKeys);
    }
  }
  for (int64_t key = 0; key < place.key_lanes; key += kGroup * lane_count()) {
    const int64_t first = std::min(first_query(place, key), place.queries);
    const int64_t left = (place.key_lanes - key + lane_count() - 1) / lane_count();
    const LaneProduct product{.m = head.features,
                              .vectors = std::min(kGroup, left),
                              .k = queries - first,
                              .a = x + first,
                              .a_row = x_row,
                              .b = turned + first * kMostKeys + key,
                              .b_row = kMostKeys,
                              .c = to + key,
                              .c_row = to_row,
                              .ahead = ahead};
    if (adds) {
      lane_product<true>(product);
    } else {
      lane_product<false>(product);
    }
  }
}

// `adds_to_q`, `adds_to_k`: whether dq, and dk and dv, are already written for these tokens.
void add_block(const AttentionHead& head, const BlockPlace& place, const AttentionBackward& a,
               const Queries& queries, bool adds_to_q, bool adds_to_k, Blocks& blocks, Edge& edge) {
  const int64_t q = place.q0 / kAttentionBlock, k = place.k0 / kAttentionBlock;
  scores(head, place, a.k.at(k), a.k.row, a.q.at(q), a.q.row, blocks.weights, a.ahead);
  scores(head, place, a.v.at(k), a.v.row, a.dy.at(q), a.dy.row, blocks.slopes, a.ahead);
  if (head.dropout > 0.0) {
    draw_factors(head, place, blocks.factors);
    make_slopes<true>(head, place, queries, blocks);
  } else {
    make_slopes<false>(head, place, queries, blocks);
  }
  edge.weights.take(place, blocks.weights);
  edge.slopes.take(place, blocks.slopes);
  add_to_keys(head, place, a.transpose, a.dy.at(q), a.dy.row, blocks.weights, edge.weights,
              blocks.turned, adds_to_k, a.dv.at(k), a.dv.row, a.ahead);
  const auto add = adds_to_q ? weighed_sums<true> : weighed_sums<false>;
  add(head, place, a.k.at(k), a.k.row, blocks.slopes, a.dq.at(q), a.dq.row, a.ahead);
  add_to_keys(head, place, a.transpose, a.q.at(q), a.q.row, blocks.slopes, edge.slopes,
              blocks.turned, adds_to_k, a.dk.at(k), a.dk.row, a.ahead);
}

// The edge's queries: their rows of p and ds, and their dq.
void begin_edge(const AttentionHead& head, const AttentionBackward& a, Edge& edge) {
  edge_scores(head, a.k, a.q, edge.weights.of_queries);
  edge_scores(head, a.v, a.dy, edge.slopes.of_queries);
  const Vector scale = constant(head.scale);
  for (int64_t e = 0; e < head.edge(); ++e) {
    const int64_t token = head.block_tokens() + e;
    float projection = 0.0f;
    for (int64_t f = 0; f < head.features; ++f) {
      projection += a.dy.data[f * a.dy.row + token] * a.y.data[f * a.y.row + token];
    }
    const Vector lse = constant(a.lse[token]), d = constant(projection);
    float* p = edge.weights.of_queries.at(e);
    float* ds = edge.slopes.of_queries.at(e);
    map([=](Vector v) HWY_ATTR { return quick_exp(hn::MulSub(v, scale, lse)); }, head.length, p, p);
    map([=](Vector weight, Vector dp)
            HWY_ATTR { return hn::Mul(hn::Mul(weight, scale), hn::Sub(dp, d)); },
        head.length, ds, p, ds);
    edge_sums<false>(head, a.k, ds, 1.0f, a.dq.data + token, a.dq.row);
  }
}

// Adds the contributions of all queries to the edge's keys.
void finish_edge(const AttentionHead& head, const AttentionBackward& a, Edge& edge) {
  edge.weights.take_corner(head);
  edge.slopes.take_corner(head);
  const auto sum = a.adds ? edge_sums<true> : edge_sums<false>;
  for (int64_t e = 0; e < head.edge(); ++e) {
    const int64_t token = head.block_tokens() + e;
    sum(head, a.dy, edge.weights.of_keys.at(e), 1.0f, a.dv.data + token, a.dv.row);
    sum(head, a.q, edge.slopes.of_keys.at(e), 1.0f, a.dk.data + token, a.dk.row);
  }
}

void backward_head(const AttentionHead& head, const AttentionBackward& arrays) {
  Blocks blocks;
  Edge edge;
  if (head.edge() > 0) begin_edge(head, arrays, edge);
  for (int64_t q = 0; q < head.query_blocks(); ++q) {
    const Queries queries(head, arrays, q);
    bool adds_to_q = false;
    for (int64_t k = 0; k < head.key_blocks(); ++k) {
      const BlockPlace place(head, q, k);
      if (!place.is_visible()) break;
      const bool adds_to_k = arrays.adds || q > (head.causal ? k : 0);
      if (sees_any(head, place)) {
        add_block(head, place, arrays, queries, adds_to_q, adds_to_k, blocks, edge);
        adds_to_q = true;
      } else if (!adds_to_k) {
        clear_lanes(head, arrays.dk.at(k), arrays.dk.row, place.keys);
        clear_lanes(head, arrays.dv.at(k), arrays.dv.row, place.keys);
      }
    }
    const int64_t left = std::min(kAttentionBlock, head.length - q * kAttentionBlock);
    if (!adds_to_q) clear_lanes(head, arrays.dq.at(q), arrays.dq.row, left);
  }
  if (head.edge() > 0) finish_edge(head, arrays, edge);
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
