// The Rotary layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Rotates queries and keys, which are concatenated with values, by angles that grow with the
/// position (`rotary`, autograd/tokens/attention.h). Put it before an Attention with the same
/// heads. *Shapes:* [batch, T, (heads + 2 kv_heads) d], kept; d even.
class Rotary final : public Module {
 public:
  struct Options {
    int64_t heads = 1;
    int64_t kv_heads = 0;   ///< 0: heads
    double base = 10000.0;  ///< θ: pair i rotates by base^(−2i/d) per position
  };

  /// *Errors:* ConfigError unless heads are at least 1, kv_heads divide them, and base is above 0.
  explicit Rotary(const Options& options);

  std::string_view type() const override { return "rotary"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
