// Attention of one token to the tokens before it, for generating text.
#pragma once

#include <cstdint>

namespace lacuna {

/// A row of queries [heads · d], and the visible keys and values [seen, kv_heads · d].
struct AttentionStep {
  int64_t heads = 1;
  int64_t kv_heads = 1;  ///< divides `heads`
  int64_t head_features = 0;
  float scale = 1.0f;  ///< of q · k
  int64_t seen = 0;    ///< at least 1
  const float* queries = nullptr;
  const float* keys = nullptr;
  const float* values = nullptr;
};

/// y = softmax(scale q kᵀ) v for all heads, concatenated. *Shapes:* y [heads · d]. *Cost:* 4 d
/// operations per key and head; the heads are divided among the threads.
void attend(const AttentionStep& step, float* y);

}  // namespace lacuna
