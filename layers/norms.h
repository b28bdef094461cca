// Norms within each example, with a learned scale and at most a shift (BatchNorm has its own file).
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
  ParameterPtr weight_, bias_;
};

/// Divides by the root of the mean square over the last dimension, then scales: `rms_norm`
/// (autograd/ops/norm.h). *Shapes:* [..., features], kept; parameter `weight` (ones) [features].
class RmsNorm final : public Module {
 public:
  struct Options {
    int64_t features = 0;
    double eps = 1e-6;  ///< added to the mean square
  };

  /// *Errors:* as LayerNorm.
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

/// Normalizes each example over groups of consecutive channels, then scales and shifts each
/// channel: `group_norm` (autograd/ops/norm.h). The same in training and evaluation. *Shapes:*
/// [batch, channels, ...], kept; parameters `weight` (ones) and `bias` (zeros) [channels].
class GroupNorm final : public Module {
 public:
  struct Options {
    int64_t channels = 0;
    int64_t groups = 1;  ///< divides channels; 1 normalizes over all of an example
    double eps = 1e-5;   ///< added to the variance
  };

  /// *Errors:* ConfigError unless channels ≥ 1 are divisible by groups ≥ 1 and eps > 0.
  explicit GroupNorm(const Options& options);

  std::string_view type() const override { return "group_norm"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_, bias_;
};

}  // namespace lacuna
