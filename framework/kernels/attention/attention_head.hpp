// One head of attention: definitions shared by the kernels and their reference.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lacuna/framework/kernels/attention/asked_ahead.hpp"
#include "lacuna/framework/kernels/attention/attention.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {

/// Queries of a block, and keys of all blocks but the last: the number of lanes of a slab.
inline constexpr int64_t kAttentionBlock = kSlabWidth;
/// The most keys of the last block: up to 16 remaining keys are added to the block before them.
inline constexpr int64_t kMostKeys = kAttentionBlock + 16;

/// The most tokens after the last whole block that run as rows (attention_edge.inc), and the most
/// tokens of a head in which they do.
inline constexpr int64_t kMostEdge = 4, kMostEdgedTokens = 512 + 16;

/// A head of one example.
struct AttentionHead {
  int64_t length = 0, features = 0;
  bool causal = false;
  float scale = 1.0f;
  const int64_t* key_mask =
      nullptr;  ///< [length]: 0 at keys that are masked for all queries; null: no mask

  double dropout = 0.0;
  const CounterRng* rng = nullptr;
  uint64_t first_row = 0;  ///< of the draws: (example · heads + head) · length

  /// Blocks of random words for a row.
  uint64_t row_blocks() const { return static_cast<uint64_t>(length + 1) / 2; }
  /// Keys visible to a query, without regard to the mask.
  int64_t visible(int64_t query) const { return causal ? query + 1 : length; }
  bool sees(int64_t key) const { return key_mask == nullptr || key_mask[key] != 0; }

  /// Tokens at the end whose queries and keys are not lanes of blocks.
  int64_t edge() const {
    const int64_t left = length % kAttentionBlock;
    const bool is_plain = !causal && key_mask == nullptr && dropout == 0.0;
    const bool is_edge = left <= kMostEdge && length > left && length < kMostEdgedTokens;
    return is_plain && is_edge ? left : 0;
  }
  int64_t block_tokens() const { return length - edge(); }
  int64_t query_blocks() const { return (block_tokens() + kAttentionBlock - 1) / kAttentionBlock; }
  int64_t key_blocks() const {
    return std::max<int64_t>(1, (length + kAttentionBlock - 17) / kAttentionBlock);
  }
};

AttentionHead head_of(const AttentionProblem& problem, int64_t example, int64_t query_head);

/// Features × tokens of a head: feature f of block b of tokens is at data + b · block + f · row.
/// Vectors may extend beyond the tokens, up to a multiple of 16.
template <class Float>
struct HeadLanes {
  Float* data = nullptr;
  int64_t row = 0, block = 0;

  Float* at(int64_t b) const { return data + b * block; }
};
using ConstLanes = HeadLanes<const float>;
using Lanes = HeadLanes<float>;

/// The arrays of one head's forward pass; lse [length].
struct AttentionForward {
  ConstLanes q = {}, k = {}, v = {};
  Lanes y = {};
  float* lse = nullptr;
  AskedAhead* ahead = nullptr;
};

/// The arrays of its backward pass.
struct AttentionBackward {
  ConstLanes q = {}, k = {}, v = {}, y = {}, dy = {};
  const float* lse = nullptr;
  Lanes dq = {}, dk = {}, dv = {};
  bool adds = false;  ///< adds to dk and dv, which another query head has written
  Transposition transpose = nullptr;
  AskedAhead* ahead = nullptr;
};

/// The kernel of the active instruction set.
using AttentionForwardKernel = void (*)(const AttentionHead&, const AttentionForward&);
using AttentionBackwardKernel = void (*)(const AttentionHead&, const AttentionBackward&);
AttentionForwardKernel attention_forward_kernel();
AttentionBackwardKernel attention_backward_kernel();

}  // namespace lacuna
