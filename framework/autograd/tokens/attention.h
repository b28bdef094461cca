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
  bool causal = false;                         ///< a position sees itself and those before it
  std::optional<double> scale = std::nullopt;  ///< of q · k; default 1/√d
  /// [batch, T]: positions where it is 0 are seen by nobody. Undefined: all are seen.
  IndexTensor key_mask = {};
  double dropout = 0.0;       ///< probability with which a weight is dropped, in [0, 1)
  CounterRng rng{0, ""};      ///< of the dropout
  int64_t first_example = 0;  ///< in its draws: examples of the batch before these (core/shards.h)
};

/// For each head y = softmax(scale q kᵀ) v, its weights dropped at random where that is asked for.
/// A position that sees none gets zeros, and gives none a gradient. q, k and v lie side by side in
/// the last dimension: all heads' queries, then the key heads' keys, then their values; query head
/// i uses key head ⌊i · kv_heads / heads⌋. *Shapes:* qkv [batch, T, (heads + 2 kv_heads) d] →
/// [batch, T, heads · d], in the input's order where that is row-major or slabs of the batch, else
/// row-major. *Errors:* ShapeError with both shapes; ConfigError on numbers of heads that do not
/// divide each other, and a dropout outside [0, 1). *Cost:* 4 d operations a pair of positions and
/// head forward, 10 d backward; it saves qkv, y and one float a row: memory grows with T, not with
/// T². *Source:* Dao et al., arXiv:2205.14135; grouped heads: Ainslie et al., arXiv:2305.13245.
Variable attention(const Variable& qkv, const AttentionOptions& options);

/// The same for the last tokens of one text alone, from the keys and values of all its tokens,
/// theirs included; causal, without dropout, and without a graph. *Shapes:* qkv [1, T, (heads + 2
/// kv_heads) d] row-major, keys and values [all tokens, kv_heads · d] → [1, T, heads · d].
/// *Errors:* as above; ShapeError when keys and values are not as many as some tokens have, of at
/// least T. *Cost:* 4 d operations a head for each of the T tokens and each that it sees.
Tensor attention_to_seen(const Tensor& qkv, std::span<const float> keys,
                         std::span<const float> values, const AttentionOptions& options);

struct RotaryOptions {
  int64_t heads = 1;
  int64_t kv_heads = 0;        ///< 0: heads
  double base = 10000.0;       ///< θ: pair i turns by base^(−2i/d) a position
  int64_t first_position = 0;  ///< of the first row, at least 0
};

/// Turns each pair (i, i + d/2) of features of the queries and keys of a [q | k | v], as attention
/// takes it, by an angle that grows with the position: q · k then depends on how far apart the two
/// are. Values are copied. *Shapes:* qkv [batch, T, (heads + 2 kv_heads) d], d even, kept; the
/// storage order is kept as by attention. *Errors:* ShapeError; ConfigError on the options.
/// *Source:* Su et al., arXiv:2104.09864, with the pairs of Llama's code.
Variable rotary(const Variable& qkv, const RotaryOptions& options);

/// The features of one head of a [q | k | v] with so many in its last dimension. `kv_heads` 0
/// stands for `heads`. *Errors:* ConfigError where kv_heads do not divide heads; ShapeError, with
/// the shape, where the heads do not divide the features. Both begin with `what`.
int64_t head_features(std::string_view what, const Shape& qkv, int64_t heads, int64_t kv_heads);

}  // namespace lacuna
