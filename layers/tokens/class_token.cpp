#include "lacuna/layers/tokens/class_token.h"

#include <fmt/core.h>

#include <array>
#include <memory>
#include <string>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/tokens/token_embedding.h"

namespace lacuna {

ClassToken::ClassToken(const Options& options) : options_(options) {
  if (options.features < 1) {
    throw ConfigError(
        fmt::format("class_token: features must be at least 1, found {}", options.features));
  }
  token_ = register_parameter(
      "", std::make_shared<Parameter>(Shape{1, 1, options.features},
                                      embedding_initializer("class_token", options.init)));
  token_->use = WeightUse::Embedding;
}

Shape ClassToken::output_shape(const Shape& input) const {
  if (input.rank() != 2 || input[1] != options_.features) {
    throw ShapeError(fmt::format(
        "layer '{}' (class_token): a token of shape {} needs examples of shape [T, {}], found {}",
        path(), token_->shape().to_string(), options_.features, input.to_string()));
  }
  return {input[0] + 1, input[1]};
}

Variable ClassToken::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const Tensor places = Tensor::zeros({input.shape()[0], 1, options_.features});
  const std::array<Variable, 2> parts{add(places, Variable::of(token_)), input};
  return concatenate(parts, 1);
}

namespace {

LayerPtr make_class_token(const Config& options, const Shape& input) {
  return make_at<ClassToken>(options, {.features = read_features(options, "features", input),
                                       .init = read_embedding_init(options, WeightInit::Zeros)});
}

std::string write_class_token(OnnxGraph& graph, const ClassToken& layer, const std::string& x,
                              const Shape&) {
  const std::string shape =
      graph.add("Concat", {graph.size(x, 0), graph.integers({1, layer.token()->shape()[2]})},
                {{"axis", int64_t{0}}});
  const std::string tokens = graph.add("Expand", {graph.parameter(*layer.token()), shape});
  return graph.add("Concat", {tokens, x}, {{"axis", int64_t{1}}});
}

UnitAxis units_of_class_token(UnitGraph& graph, const ClassToken& layer, const UnitAxis& input,
                              const Shape& example) {
  const UnitGraph::Units units = graph.along(layer, input, example, 1);
  graph.gives(layer.token(), 2, units);
  graph.counts(layer, "features", units);
  return {1, units};
}

}  // namespace

void register_class_token(LayerRegistry& registry) {
  registry.add("class_token", "puts a learned token before each sequence: features, init",
               {.make = make_class_token,
                .onnx = onnx_form(write_class_token),
                .units = unit_form(units_of_class_token)});
}

}  // namespace lacuna
