// The LayerNorm layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Normalizes over the last dimension, then scales and shifts: `layer_norm` (autograd/ops/norm.h).
/// *Shapes:* [..., features], kept; parameters `weight` (ones) and `bias` (zeros) [features].
class LayerNorm final : public Module {
 public:
  struct Options {
    int64_t features = 0;
    double eps = 1e-5;  ///< added to the variance
  };

  /// *Errors:* ConfigError unless features ≥ 1 and eps > 0.
  explicit LayerNorm(const Options& options);

  std::string_view type() const override { return "layer_norm"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

}  // namespace lacuna
