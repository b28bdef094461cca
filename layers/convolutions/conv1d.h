// The Conv1d layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/nn/affine_layer.h"

namespace lacuna {

/// y = w ∗ x + b along sequences. *Shapes:* [batch, in_channels, length] → [batch, out_channels,
/// …]; parameters `weight` [out_channels, in_channels / groups, kernel] and `bias` [out_channels].
class Conv1d final : public AffineLayer {
 public:
  struct Options {
    int64_t in_channels = 0;
    int64_t out_channels = 0;
    int64_t kernel = 3;
    int64_t stride = 1;
    int64_t padding = 0;  ///< zeros at each end
    int64_t dilation = 1;
    int64_t groups = 1;  ///< in_channels: a depthwise convolution
    bool bias = true;
    int64_t length = 0;  ///< of the input sequences, if known, for layout auto
    /// How the weight is drawn, as in Linear, with in_channels / groups · kernel inputs of an
    /// output.
    WeightDraw init = WeightInit::Default;
    FanIn init_fan_in = FanIn::all();
  };

  /// *Errors:* ConfigError if a channel count or the kernel is below 1, or groups do not divide the
  /// channels; ShapeError from output_shape and forward on an invalid stride, dilation or padding.
  explicit Conv1d(const Options& options);

  std::string_view type() const override { return "conv1d"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override;
  bool gives_channels(const Shape&) const override { return true; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
