// Attention as an operation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/random.h"

namespace lacuna {

struct AttentionOptions {
  int64_t heads = 1;                           ///< h, of queries
  int64_t kv_heads = 0;                        ///< of keys and values, a divisor of h; 0: h
  bool causal = false;                         ///< positions see only themselves and earlier ones
  std::optional<double> scale = std::nullopt;  ///< of q · k; default 1/√d
  /// [batch, T]: positions where it is 0 are masked. Undefined: none is.
  IndexTensor key_mask = {};
  double dropout = 0.0;       ///< probability of dropping a weight, in [0, 1)
  CounterRng rng{0, ""};      ///< for dropout
  int64_t first_example = 0;  ///< in its draws: examples of the batch before these (core/shards.h)
};

/// For each head y = softmax(scale q kᵀ) v, with dropout of weights on request. A position without
/// visible keys gets zeros, and passes on no gradient. q, k and v are concatenated in the last
/// dimension: all heads' queries, then the key heads' keys, then their values; query head i uses
/// key head ⌊i · kv_heads / heads⌋. *Shapes:* qkv [batch, T, (heads + 2 kv_heads) d] → [batch, T,
/// heads · d], in the input's order if that is row-major or slabs of the batch, else row-major.
/// *Errors:* ShapeError with both shapes; ConfigError if numbers of heads do not divide each other
/// or dropout is outside [0, 1). *Cost:* 4 d operations per pair of positions and head forward, 10
/// d backward. It saves qkv, y and one float per row: memory grows with T, not with T². *Source:*
/// Dao et al., arXiv:2205.14135; grouped heads: Ainslie et al., arXiv:2305.13245.
Variable attention(const Variable& qkv, const AttentionOptions& options);

/// The same for only the last tokens of one text, from the keys and values of all its tokens
/// including these; causal, without dropout, without a graph. *Shapes:* qkv [1, T, (heads + 2
/// kv_heads) d] row-major, keys and values [all tokens, kv_heads · d] → [1, T, heads · d].
/// *Errors:* as above; ShapeError unless keys and values have the sizes of at least T tokens.
/// *Cost:* 4 d operations per head for each of the T tokens and each visible token.
Tensor attention_to_seen(const Tensor& qkv, std::span<const float> keys,
                         std::span<const float> values, const AttentionOptions& options);

struct RotaryOptions {
  int64_t heads = 1;
  int64_t kv_heads = 0;        ///< 0: heads
  double base = 10000.0;       ///< θ: pair i rotates by base^(−2i/d) per position
  int64_t first_position = 0;  ///< of the first row, at least 0
};

/// Rotates each pair (i, i + d/2) of features of the queries and keys of a [q | k | v] (as for
/// attention) by an angle that grows with the position: q · k then depends on the distance of the
/// two positions. Values are copied. *Shapes:* qkv [batch, T, (heads + 2 kv_heads) d], d even,
/// kept; the storage order is kept as in attention. *Errors:* ShapeError; ConfigError on the
/// options. *Source:* Su et al., arXiv:2104.09864, with the pairs of Llama's code.
Variable rotary(const Variable& qkv, const RotaryOptions& options);

/// The features of one head of a [q | k | v] with this last dimension. `kv_heads` 0 means `heads`.
/// *Errors:* ConfigError if kv_heads do not divide heads; ShapeError, with the shape, if the heads
/// do not divide the features. Both begin with `what`.
int64_t head_features(std::string_view what, const Shape& qkv, int64_t heads, int64_t kv_heads);

}  // namespace lacuna
