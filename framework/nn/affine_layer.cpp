#include "lacuna/framework/nn/affine_layer.h"

#include <memory>

namespace lacuna {

void AffineLayer::make_parameters(const Shape& weight, WeightUse use, const Draw& draw) {
  draw_ = draw;
  const Fans fans = fans_of(weight);
  const int64_t fan_in = draw.init_fan_in.inputs(fans.in);
  const Initializer initializer = draw.init_fan_in.counts_nonzeros()
                                      ? make_initializer_for_nonzeros(draw.init, fan_in, fans.out)
                                      : make_initializer(draw.init, fan_in, fans.out);
  weight_ = register_parameter("weight", std::make_shared<Parameter>(weight, initializer));
  weight_->use = use;
  if (!draw.bias) return;
  const bool is_zero = draw.init.zero_bias();
  bias_ = register_parameter(
      "bias", std::make_shared<Parameter>(
                  Shape{weight[0]}, is_zero ? Initializer::constant(0.0) : default_linear(fan_in)));
}

const ParameterPtr& AffineLayer::require_bias() {
  if (bias_ == nullptr) {
    bias_ = register_parameter("bias", std::make_shared<Parameter>(Shape{weight_->shape()[0]},
                                                                   Initializer::constant(0.0)));
  }
  return bias_;
}

}  // namespace lacuna
