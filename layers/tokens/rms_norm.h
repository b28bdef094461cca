// The RmsNorm layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Divides by the root of the mean square over the last dimension, then scales: `rms_norm`
/// (autograd/ops/norm.h).
/// *Shapes:* [..., features], kept; parameter `weight` (ones) [features].
class RmsNorm final : public Module {
 public:
  struct Options {
    int64_t features = 0;
    double eps = 1e-6;  ///< added to the mean square
  };

  /// *Errors:* ConfigError unless features ≥ 1 and eps > 0.
  explicit RmsNorm(const Options& options);

  std::string_view type() const override { return "rms_norm"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_;
};

}  // namespace lacuna
