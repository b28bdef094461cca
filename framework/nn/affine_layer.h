// AffineLayer: the weight and bias that Linear, the convolutions and the patch embedding share.
#pragma once

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Base of layers that compute exactly W · x + b, with parameters `weight` [out, in, ...] and
/// `bias` [out]: a scale and a shift of each output can be folded into both.
class AffineLayer : public Module {
 public:
  const ParameterPtr& weight() const { return weight_; }
  /// Null without a bias.
  const ParameterPtr& bias() const { return bias_; }
  /// Adds a bias of zeros to a layer without one. *Returns* the bias.
  const ParameterPtr& require_bias();
  /// Whether the first dimension of an output is that of the weight, as in the channels of a
  /// convolution, for an input of this shape.
  virtual bool gives_channels(const Shape& input) const = 0;

  /// How the parameters are drawn, as in Linear::Options.
  struct Draw {
    bool bias = true;
    WeightDraw init = WeightInit::Default;
    FanIn init_fan_in = FanIn::all();
  };
  const Draw& draw() const { return draw_; }

 protected:
  /// Registers the parameters; called once, by the constructor. *Requires* sizes of at least 1.
  void make_parameters(const Shape& weight, WeightUse use, const Draw& draw);
  Variable bias_variable() const { return bias_ != nullptr ? Variable::of(bias_) : Variable(); }

 private:
  Draw draw_;
  ParameterPtr weight_, bias_;
};

}  // namespace lacuna
