#include "lacuna/layers/tied_linear.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

TiedLinear::TiedLinear(const Options& options) : weight_(options.weight) {
  if (weight_ == nullptr) throw ConfigError("linear: there is no weight to be tied to");
  if (weight_->shape().rank() != 2) {
    throw ShapeError(fmt::format(
        "linear: only a weight of shape [out_features, in_features] can be shared, '{}' has {}",
        weight_->name(), weight_->shape().to_string()));
  }
  if (weight_->sparse_gradient) {
    throw ConfigError(
        fmt::format("linear: every row of '{}' gets a gradient, because a linear layer is tied to "
                    "it; leave out sparse_gradient there, or give the linear layer its own weight",
                    weight_->name()));
  }
  weight_->is_tied = true;
  if (!options.bias) return;
  bias_ = register_parameter(
      "bias", std::make_shared<Parameter>(Shape{weight_->shape()[0]}, Initializer::constant(0.0)));
}

std::string TiedLinear::description() const {
  const std::string& name = weight_->name();
  const size_t dot = name.rfind('.');
  return "tied to " + (dot == std::string::npos ? name : name.substr(0, dot));
}

Shape TiedLinear::output_shape(const Shape& input) const {
  const Shape& weight = weight_->shape();
  if (input.rank() < 1 || input.features() != weight[1]) {
    throw ShapeError(fmt::format(
        "layer '{}' (linear): the weight '{}' of shape {}, which it is tied to, needs examples of "
        "shape [..., {}], found {}",
        path(), weight_->name(), weight.to_string(), weight[1], input.to_string()));
  }
  return input.with_features(weight[0]);
}

Variable TiedLinear::forward(const Variable& input) {
  return linear(input, weight_, bias_ != nullptr ? Variable::of(bias_) : Variable());
}

}  // namespace lacuna
