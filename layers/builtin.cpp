#include "lacuna/layers/builtin.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/layers/dropout.h"
#include "lacuna/layers/flatten.h"
#include "lacuna/layers/gelu.h"
#include "lacuna/layers/layer_norm.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/relu.h"
#include "lacuna/layers/semi_sparse_activation.h"
#include "lacuna/layers/sigmoid.h"
#include "lacuna/layers/silu.h"
#include "lacuna/layers/squared_relu.h"
#include "lacuna/layers/tanh.h"

namespace lacuna {
namespace {

using LayerPtr = std::unique_ptr<Module>;

template <class Layer>
LayerPtr make_plain(const Config&, const Shape&) {
  return std::make_unique<Layer>();
}

// The size of the last dimension: given under `key`, or else that of the input.
int64_t read_features(const Config& options, const char* key, const Shape& input) {
  if (input.rank() < 1) {
    throw ShapeError("this layer needs examples of shape [..., features], its input has shape " +
                     input.to_string());
  }
  const auto features = options.get<int64_t>(key, input.features());
  if (features != input.features()) {
    throw ShapeError(fmt::format("{} is {}, but the examples that reach this layer have shape {}",
                                 key, features, input.to_string()));
  }
  return features;
}

LayerPtr make_linear(const Config& options, const Shape& input) {
  const auto out = options.required<int64_t>("out_features");
  return std::make_unique<Linear>(
      Linear::Options{.in_features = read_features(options, "in_features", input),
                      .out_features = require_at_least(options, "out_features", out, 1),
                      .bias = options.get("bias", true),
                      .init = read_weight_init(options, "init"),
                      .init_fan_in = read_fan_in(options, "init_fan_in")});
}

LayerPtr make_gelu(const Config& options, const Shape&) {
  const auto approximate = options.get<std::string>("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    options.at("approximate").fail("none or tanh");
  }
  return std::make_unique<GELU>(
      GELU::Options{approximate == "tanh" ? GELU::Approximate::Tanh : GELU::Approximate::None});
}

LayerPtr make_layer_norm(const Config& options, const Shape& input) {
  const double eps = options.get("eps", 1e-5);
  if (!(eps > 0.0)) options.at("eps").fail("a number above 0");
  return std::make_unique<LayerNorm>(
      LayerNorm::Options{.features = read_features(options, "features", input), .eps = eps});
}

LayerPtr make_dropout(const Config& options, const Shape&) {
  const double p = options.get("p", 0.5);
  if (!(p >= 0.0 && p < 1.0)) options.at("p").fail("a probability in [0, 1)");
  return std::make_unique<Dropout>(Dropout::Options{.p = p});
}

LayerPtr make_semi_sparse_activation(const Config& options, const Shape&) {
  const auto m = require_at_least(options, "m", options.get<int64_t>("m", 4), 1);
  const auto n = require_at_least(options, "n", options.get<int64_t>("n", 2), 1);
  if (m > 16) options.at("m").fail("a number from 1 to 16");
  if (n > m) options.at("n").fail(fmt::format("at most m, which is {}", m));
  return std::make_unique<SemiSparseActivation>(
      SemiSparseActivation::Options{.n = static_cast<int>(n), .m = static_cast<int>(m)});
}

}  // namespace

void register_layers(LayerRegistry& registry) {
  registry.add("linear", "y = x Wᵀ + b: out_features, in_features, bias, init, init_fan_in",
               make_linear);
  registry.add("relu", "max(x, 0)", make_plain<ReLU>);
  registry.add("squared_relu", "max(x, 0)²", make_plain<SquaredReLU>);
  registry.add("gelu", "x Φ(x): approximate (none, tanh)", make_gelu);
  registry.add("silu", "x σ(x)", make_plain<SiLU>);
  registry.add("sigmoid", "1 / (1 + e⁻ˣ)", make_plain<Sigmoid>);
  registry.add("tanh", "tanh x", make_plain<Tanh>);
  registry.add("layer_norm", "normalization over the last dimension: eps, features",
               make_layer_norm);
  registry.add("dropout", "zeroes elements while training: p", make_dropout);
  registry.add("semi_sparse_activation", "keeps the n largest |x| of each m features: n (2), m (4)",
               make_semi_sparse_activation);
  registry.add("flatten", "all of an example's dimensions in one", make_plain<Flatten>);
}

}  // namespace lacuna
