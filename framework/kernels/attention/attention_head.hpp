// One head of attention on arrays of its own: what the kernels and their reference agree on.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/attention/attention.hpp"

namespace lacuna {

/// Queries and keys of a block: 64 × 64 weights are 16 KiB.
inline constexpr int64_t kAttentionBlock = 64;

/// A head of one example. Its arrays have `rows` × `stride` floats, zero outside of length ×
/// features; transposed ones `features` × `rows`.
struct AttentionHead {
  int64_t length = 0, features = 0;
  int64_t rows = 0, stride = 0;  ///< multiples of 16
  bool causal = false;
  float scale = 1.0f;
  const float* bias = nullptr;  ///< [rows]: 0 for a key that is seen, −∞ for others

  double dropout = 0.0;
  const CounterRng* rng = nullptr;
  uint64_t first_row = 0;  ///< of the draws: (example · heads + head) · length

  /// Blocks of random words for a row.
  uint64_t row_blocks() const { return static_cast<uint64_t>(length + 1) / 2; }
  int64_t size() const { return rows * stride; }
  /// Keys that a query sees, not counting the mask.
  int64_t visible(int64_t query) const { return causal ? query + 1 : length; }
};

/// The arrays of one head's forward pass: queries, keys transposed, values → y, lse [length].
struct AttentionForward {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* k_transposed = nullptr;
  const float* v = nullptr;
  float* y = nullptr;
  float* lse = nullptr;
};

/// Those of its backward pass; dk and dv are added to.
struct AttentionBackward {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* k_transposed = nullptr;
  const float* v = nullptr;
  const float* v_transposed = nullptr;
  const float* y = nullptr;
  const float* dy = nullptr;
  const float* lse = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
};

/// The kernel of the active instruction set.
using AttentionForwardKernel = void (*)(const AttentionHead&, const AttentionForward&);
using AttentionBackwardKernel = void (*)(const AttentionHead&, const AttentionBackward&);
AttentionForwardKernel attention_forward_kernel();
AttentionBackwardKernel attention_backward_kernel();

}  // namespace lacuna
