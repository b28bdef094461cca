// Attention of all heads of a batch, and its derivatives, without a matrix of queries × keys.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The problem. A row of `qkv` holds the queries of all heads, then the keys of all key heads, then
/// their values; query head h uses key head h · kv_heads / heads.
struct AttentionProblem {
  int64_t batch = 0;
  int64_t length = 0;         ///< T, positions of an example
  int64_t heads = 1;          ///< of queries
  int64_t kv_heads = 1;       ///< of keys and values; divides `heads`
  int64_t head_features = 0;  ///< d
  bool causal = false;        ///< only keys up to a query's position are visible
  float scale = 1.0f;         ///< of q · k
  /// [batch, length]: keys where it is 0 are masked; null: none is.
  const int64_t* key_mask = nullptr;
  /// Probability with which a weight is dropped, in [0, 1). The word of (example, head, query, key)
  /// is number key % 2 of block ((example · heads + head) · length + query) · ⌈length/2⌉ + key / 2.
  double dropout = 0.0;
  CounterRng rng{0, ""};
  int64_t first_example = 0;  ///< for the draws: number of examples before this part of a batch

  int64_t group() const { return heads / kv_heads; }
  int64_t features() const { return (heads + 2 * kv_heads) * head_features; }
};

/// Queries, keys and values as separate tensors, or as parts of one, with the columns where their
/// heads begin.
template <class T>
struct QkvTensors {
  T* q = nullptr;
  T* k = nullptr;
  T* v = nullptr;
  int64_t first_key = 0, first_value = 0;

  static QkvTensors joined(const AttentionProblem& problem, T& qkv) {
    return {&qkv, &qkv, &qkv, problem.heads, problem.heads + problem.kv_heads};
  }
  int64_t bytes() const { return q == k ? q->bytes() : q->bytes() + k->bytes() + v->bytes(); }
};

/// y = dropout(softmax(scale q kᵀ)) v for all heads, concatenated; zeros if a query has no visible
/// key. lse[b, h, t] is the logarithm of the row's sum of exponentials, +∞ without a visible key;
/// from it the backward pass recomputes the weights. *Shapes:* q [batch, length, heads · d], k and
/// v [batch, length, kv_heads · d], or qkv [batch, length, features()], and y [batch, length,
/// heads · d], all row-major or all in slabs of the batch; lse [batch, heads, length]. *Cost:* 4 d
/// operations for each pair of a query and a key, half of the pairs if causal; blocks in which all
/// keys are masked are skipped. If blocks of 64 tokens are not slabs, a thread keeps 4 (length ·
/// d) floats. Results do not depend on the number of threads. *Source:* Dao et al.,
/// "FlashAttention", NeurIPS 2022 (arXiv:2205.14135); grouped heads: Ainslie et al.,
/// arXiv:2305.13245.
void attention(const AttentionProblem& problem, const QkvTensors<const Tensor>& qkv, Tensor& y,
               float* lse);

/// The gradient of qkv from that of y. *Shapes:* as above, dy and dqkv in the order of y and qkv.
/// *Cost:* 10 d operations per pair, and 8 (length · d) floats per thread.
void attention_gradient(const AttentionProblem& problem, const QkvTensors<const Tensor>& qkv,
                        const Tensor& y, const float* lse, const Tensor& dy,
                        const QkvTensors<Tensor>& dqkv);

}  // namespace lacuna
