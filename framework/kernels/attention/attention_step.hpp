// Attention of one token to those before it: what generating text is made of.
#pragma once

#include <cstdint>

namespace lacuna {

/// A row of queries [heads · d], and the keys and values [seen, kv_heads · d] of what it sees.
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

/// y = softmax(scale q kᵀ) v for each head, side by side. *Shapes:* y [heads · d]. *Cost:* 4 d
/// operations for each key and head; the heads are shared out to the threads.
void attend(const AttentionStep& step, float* y);

}  // namespace lacuna
