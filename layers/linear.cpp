#include "lacuna/layers/linear.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

Linear::Linear(const Options& options) : options_(options) {
  const int64_t in = options.in_features, out = options.out_features;
  if (in < 1 || out < 1) {
    throw ConfigError(fmt::format(
        "linear: in_features and out_features must be at least 1, found {} and {}", in, out));
  }
  const int64_t fan_in = options.init_fan_in.inputs(in);
  const Initializer initializer = options.init_fan_in.counts_nonzeros()
                                      ? make_initializer_for_nonzeros(options.init, fan_in, out)
                                      : make_initializer(options.init, fan_in, out);
  if (options.tied_to.empty()) {
    weight_ =
        register_parameter("weight", std::make_shared<Parameter>(Shape{out, in}, initializer));
    weight_->use = WeightUse::Linear;
  }
  if (options.bias) {
    const bool is_zero = options.init.zero_bias();
    bias_ = register_parameter(
        "bias", std::make_shared<Parameter>(
                    Shape{out}, is_zero ? Initializer::constant(0.0) : default_linear(fan_in)));
  }
}

Shape Linear::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.features() != options_.in_features) {
    throw ShapeError(fmt::format(
        "layer '{}' (linear): a weight of shape {} needs examples of shape [..., {}], found {}",
        path(), Shape{options_.out_features, options_.in_features}.to_string(),
        options_.in_features, input.to_string()));
  }
  return input.with_features(options_.out_features);
}

void Linear::tie(const ParameterPtr& weight) {
  if (options_.tied_to.empty()) {
    throw StateError(fmt::format("layer '{}' (linear) has a weight of its own", path()));
  }
  const Shape expected{options_.out_features, options_.in_features};
  if (weight->shape() != expected) {
    throw ShapeError(fmt::format("layer '{}' (linear) needs a weight of shape {}, '{}' has {}",
                                 path(), expected.to_string(), weight->name(),
                                 weight->shape().to_string()));
  }
  weight_ = weight;
}

Variable Linear::forward(const Variable& input) {
  if (weight_ == nullptr) {
    throw StateError(
        fmt::format("layer '{}' (linear) has not been tied to '{}'", path(), options_.tied_to));
  }
  return linear(input, weight_, bias_ != nullptr ? Variable::of(bias_) : Variable());
}

}  // namespace lacuna
