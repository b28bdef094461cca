// The Conv2d layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = w ∗ x + b. *Shapes:* [batch, in_channels, height, width] → [batch, out_channels, …];
/// parameters `weight` [out_channels, in_channels / groups, kernel height, kernel width] and `bias`
/// [out_channels].
class Conv2d final : public Module {
 public:
  struct Options {
    int64_t in_channels = 0;
    int64_t out_channels = 0;
    Extent kernel{3, 3};
    Extent stride{1, 1};
    Extent padding{0, 0};  ///< zeros around the image, on each side
    Extent dilation{1, 1};
    int64_t groups = 1;  ///< in_channels: a depthwise convolution
    bool bias = true;
    Extent image{0, 0};  ///< the images that come in, where they are known: for layout auto
    /// How the weight is drawn, as in Linear, with in_channels / groups · kernel inputs of an
    /// output.
    WeightDraw init = WeightInit::Default;
    FanIn init_fan_in = FanIn::all();
  };

  /// *Errors:* ConfigError where a size is below 1 or groups do not divide the channels.
  explicit Conv2d(const Options& options);

  std::string_view type() const override { return "conv2d"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override;
  const ParameterPtr& weight() const { return weight_; }
  /// How its products are computed where they run dense: from the definition, unless it is told.
  const ConvolutionAlgorithms& algorithms() const { return algorithms_; }
  void set_algorithms(const ConvolutionAlgorithms& algorithms) { algorithms_ = algorithms; }
  /// Null without a bias.
  const ParameterPtr& bias() const { return bias_; }
  /// Gives a layer without a bias one of zeros. *Returns* the bias.
  const ParameterPtr& require_bias();

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ConvolutionAlgorithms algorithms_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

}  // namespace lacuna
