#include "lacuna/layers/tokens/attention.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/core/error.h"

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

int64_t Attention::product_flops(const Shape& input) const {
  const int64_t tokens = input[0];
  const int64_t pairs = options_.causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
  return 4 * pairs * output_shape(input).features();  // QKᵀ and PV, 2 each
}

AttentionOptions Attention::plain_options() const {
  return {.heads = options_.heads,
          .kv_heads = options_.kv_heads,
          .causal = options_.causal,
          .scale = options_.scale};
}

// What stands before sequences makes them longer than their mask.
void Attention::require_mask_fits(const Shape& qkv, const Shape& mask) const {
  const Shape expected{qkv[0], qkv[1]};
  if (mask == expected) return;
  throw ShapeError(fmt::format(
      "layer '{}' (attention): sequences of shape {} need a mask of shape {}, and '{}' has {}; "
      "give another one as `mask`, or \"\" for none{}",
      path(), qkv.to_string(), expected.to_string(), options_.mask, mask.to_string(),
      mask.rank() == 2 && mask[1] + 1 == qkv[1]
          ? "; in place of a class_token, let the tokenizer put a [CLS] before each sentence "
            "(data.cls: true of words, or wordpiece), which the mask knows of"
          : ""));
}

// The first tokens of a text see one another as ever; later ones come one after the other.
Variable Attention::decode(const Variable& input, DecodingCache& cache) const {
  const std::string name = fmt::format("layer '{}' (attention)", path());
  if (!options_.causal) {
    throw StateError(name + ": text can be continued only where attention is causal");
  }
  if (input.shape()[0] != 1) {
    throw StateError(fmt::format("{}: text is continued one example at a time, found shape {}",
                                 name, input.shape().to_string()));
  }
  const int64_t heads = options_.heads,
                kv_heads = options_.kv_heads == 0 ? heads : options_.kv_heads;
  const int64_t tokens = input.shape()[1], row = input.shape().features();
  const int64_t d = row / (heads + 2 * kv_heads);
  const Tensor qkv = input.value().to(Order::RowMajor);
  DecodingCache::Seen& seen = cache.of(*this);
  for (int64_t t = 0; t < tokens; ++t) {
    const float* keys = qkv.data() + t * row + heads * d;
    seen.keys.insert(seen.keys.end(), keys, keys + kv_heads * d);
    seen.values.insert(seen.values.end(), keys + kv_heads * d, keys + 2 * kv_heads * d);
  }
  if (cache.length() == 0) return attention(input, plain_options());
  return attention_to_seen(qkv, seen.keys, seen.values, plain_options());
}

Variable Attention::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  if (DecodingCache* cache = decoding_cache()) return decode(input, *cache);
  AttentionOptions options = plain_options();
  const IndexTensor* mask = named_input(*this, options_.mask, kAttentionMask);
  if (mask != nullptr) {
    require_mask_fits(input.shape(), mask->shape());
    options.key_mask = *mask;
  }
  if (training() && options_.dropout > 0.0) {
    options.dropout = options_.dropout;
    options.rng = CounterRng(seed_, path(), static_cast<uint64_t>(calls_.next()));
    options.first_example = first_example();
  }
  return attention(input, options);
}

StateDict Attention::extra_state() const {
  StateDict state;
  if (options_.dropout > 0.0) state.set("calls", calls_.count());
  return state;
}

void Attention::load_extra_state(const StateDict& state) { calls_.set(state.count("calls")); }

void Attention::reset_random(uint64_t seed) {
  seed_ = seed;
  calls_.set(0);
}

}  // namespace lacuna
