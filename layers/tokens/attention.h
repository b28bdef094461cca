// The Attention layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lacuna/framework/autograd/tokens/attention.h"
#include "lacuna/framework/nn/decoding.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/own_products.h"
#include "lacuna/framework/nn/sharded_batch.h"
#include "lacuna/framework/nn/token_mixer.h"

namespace lacuna {

/// Attention on queries, keys and values that a previous layer has concatenated; it has no
/// parameters (autograd/tokens/attention.h). Keys are masked where the batch's named input `mask`
/// is 0; in a batch without `attention_mask`, no key is masked. Dropout is a function of the seed,
/// the layer's path and the number of the call, as in the Dropout layer. In the scope of a
/// Decoding, tokens continue the text of its cache. *Shapes:* [batch, T, (heads + 2 kv_heads) d] →
/// [batch, T, heads · d].
class Attention final : public Module,
                        public OwnProducts,
                        public NamedInputUser,
                        public TokenMixer {
 public:
  struct Options {
    int64_t heads = 1;
    int64_t kv_heads = 0;  ///< of keys and values, a divisor of heads; 0: heads
    bool causal = false;   ///< tokens attend only to themselves and earlier ones
    double dropout = 0.0;  ///< of the weights in training, in [0, 1)
    std::optional<double> scale = std::nullopt;  ///< of q · k; default 1/√d
    std::string mask = kAttentionMask;           ///< empty: none
  };

  /// *Errors:* ConfigError unless heads are at least 1, kv_heads divide them, and dropout is in
  /// [0, 1).
  explicit Attention(const Options& options);

  std::string_view type() const override { return "attention"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;
  /// FLOPs of each query's products with its visible keys, and of the weights with their values;
  /// padding counts.
  int64_t product_flops(const Shape& input) const override;
  /// Causal attention gives the same result without a mask: padding comes after the text.
  RequestedInput requested_input() const override {
    return {.name = options_.mask, .usual = kAttentionMask, .is_needed = !options_.causal};
  }
  bool is_causal() const override { return options_.causal; }

 protected:
  /// *Errors:* StateError in the scope of a Decoding unless it is causal and the batch has one
  /// example; DataError if the batch has no such mask; ShapeError if the mask has another shape.
  Variable forward(const Variable& input) override;
  StateDict extra_state() const override;
  void load_extra_state(const StateDict& state) override;
  void reset_random(uint64_t seed) override;

 private:
  Variable decode(const Variable& input, DecodingCache& cache) const;
  AttentionOptions plain_options() const;
  void require_mask_fits(const Shape& qkv, const Shape& mask) const;

  Options options_;
  uint64_t seed_ = 0;
  DrawCounter calls_;
};

}  // namespace lacuna
