#include "lacuna/layers/activations.h"

#include <fmt/core.h>

#include <cmath>

#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

ReLU::ReLU(const Options&) : PlainActivation("relu", relu) {}
SquaredReLU::SquaredReLU(const Options&) : PlainActivation("squared_relu", squared_relu) {}
SiLU::SiLU(const Options&) : PlainActivation("silu", silu) {}
Sigmoid::Sigmoid(const Options&) : PlainActivation("sigmoid", sigmoid) {}
Tanh::Tanh(const Options&) : PlainActivation("tanh", tanh) {}
SwiGLU::SwiGLU(const Options&) : PlainActivation("swiglu", swiglu) {}

Shape SwiGLU::output_shape(const Shape& input) const {
  if (input.rank() < 1 || input.features() % 2 != 0) {
    throw ShapeError(
        fmt::format("layer '{}' (swiglu): needs examples of shape [..., 2 features], found {}",
                    path(), input.to_string()));
  }
  return input.with_features(input.features() / 2);
}

LeakyReLU::LeakyReLU(const Options& options) : options_(options) {
  if (!(options.negative_slope >= 0.0f && std::isfinite(options.negative_slope))) {
    throw ConfigError(
        fmt::format("leaky_relu: negative_slope must be a finite number of at least 0, found {}",
                    options.negative_slope));
  }
}

Variable LeakyReLU::forward(const Variable& input) {
  return leaky_relu(input, options_.negative_slope);
}

Variable GELU::forward(const Variable& input) {
  return options_.approximate == Approximate::Tanh ? gelu_tanh(input) : gelu(input);
}

}  // namespace lacuna
