// The Conv2d layer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/parameter_versions.h"

namespace lacuna {

struct Int8ConvolutionLayer;

/// y = w ∗ x + b. *Shapes:* [batch, in_channels, height, width] → [batch, out_channels, …];
/// parameters `weight` [out_channels, in_channels / groups, kernel height, kernel width] and `bias`
/// [out_channels].
class Conv2d final : public AffineLayer {
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
    Extent image{0, 0};  ///< the input images' size, if known, for layout auto
    /// How the weight is drawn, as in Linear, with in_channels / groups · kernel inputs of an
    /// output.
    WeightDraw init = WeightInit::Default;
    FanIn init_fan_in = FanIn::all();
  };

  /// *Errors:* ConfigError if a channel count or the kernel is below 1, or groups do not divide the
  /// channels; ShapeError from output_shape and forward on an invalid stride, dilation or padding.
  explicit Conv2d(const Options& options);

  std::string_view type() const override { return "conv2d"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override;
  bool gives_channels(const Shape&) const override { return true; }
  /// The algorithms of its products if they run dense; by default direct ones.
  const ConvolutionAlgorithms& algorithms() const { return algorithms_; }
  void set_algorithms(const ConvolutionAlgorithms& algorithms) { algorithms_ = algorithms; }
  /// Tells each Conv2d of a model which convolutions follow it. A dense one of few inputs computes
  /// image slabs while a sparse one follows, so nothing is converted between them.
  static void find_readers(Module& model);

  /// From now on, products run in int8 and are not recorded: the layer serves inference only, and
  /// its forward pass throws StateError after a change of weight or bias.
  void run_in_int8(std::shared_ptr<const Int8ConvolutionLayer> quantized);
  /// Null if products run in float32.
  const std::shared_ptr<const Int8ConvolutionLayer>& int8() const { return int8_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  bool is_read_in_slabs() const;

  Options options_;
  ConvolutionAlgorithms algorithms_;
  std::vector<ParameterPtr> readers_;  // weights of the convolutions that read its output
  std::shared_ptr<const Int8ConvolutionLayer> int8_;
  ParameterVersions in_int8_;
};

}  // namespace lacuna
