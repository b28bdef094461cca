#include "lacuna/layers/tokens/attention.h"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/attention.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

Attention::Attention(const Options& options) : options_(options) {
  const int64_t h = options.heads, kv = options.kv_heads;
  if (h < 1 || kv < 0 || (kv > 0 && h % kv != 0)) {
    throw ConfigError(fmt::format(
        "attention: heads must be at least 1 and kv_heads divide them, found {} and {}", h, kv));
  }
  if (!(options.dropout >= 0.0 && options.dropout < 1.0)) {
    throw ConfigError(
        fmt::format("attention: dropout must be in [0, 1), found {:f}", options.dropout));
  }
}

Shape Attention::output_shape(const Shape& input) const {
  const std::string name = fmt::format("layer '{}' (attention)", path());
  if (input.rank() != 2) {
    throw ShapeError(
        fmt::format("{}: needs examples of shape [T, (heads + 2 kv_heads) d], found {}", name,
                    input.to_string()));
  }
  const int64_t d = head_features(name, input, options_.heads, options_.kv_heads);
  return input.with_features(options_.heads * d);
}

Variable Attention::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  AttentionOptions options{.heads = options_.heads,
                           .kv_heads = options_.kv_heads,
                           .causal = options_.causal,
                           .scale = options_.scale};
  const IndexTensor* mask = options_.mask.empty() ? nullptr : named_input(options_.mask);
  if (mask != nullptr) options.key_mask = *mask;
  if (training() && options_.dropout > 0.0) {
    options.dropout = options_.dropout;
    options.rng = CounterRng(seed_, path(), static_cast<uint64_t>(calls_++));
  }
  return attention(input, options);
}

StateDict Attention::extra_state() const {
  StateDict state;
  if (options_.dropout > 0.0) state.set("calls", calls_);
  return state;
}

void Attention::load_extra_state(const StateDict& state) { calls_ = state.count("calls"); }

void Attention::reset_random(uint64_t seed) {
  seed_ = seed;
  calls_ = 0;
}

}  // namespace lacuna
