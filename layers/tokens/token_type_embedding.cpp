#include "lacuna/layers/tokens/token_type_embedding.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/tokens/embedding.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/tokens/token_embedding.h"

namespace lacuna {

TokenTypeEmbedding::TokenTypeEmbedding(const Options& options) : options_(options) {
  if (options.types < 1 || options.features < 1) {
    throw ConfigError(
        fmt::format("token_type_embedding: types and features must be at least 1, found {} and {}",
                    options.types, options.features));
  }
  weight_ = register_parameter(
      "weight",
      std::make_shared<Parameter>(Shape{options.types, options.features},
                                  embedding_initializer("token_type_embedding", options.init)));
  weight_->use = WeightUse::Embedding;
}

Shape TokenTypeEmbedding::output_shape(const Shape& input) const {
  if (input.rank() == 2 && input[1] == options_.features) return input;
  throw ShapeError(
      fmt::format("layer '{}' (token_type_embedding): a weight of shape {} needs examples of shape "
                  "[T, {}], found {}",
                  path(), weight_->shape().to_string(), options_.features, input.to_string()));
}

Variable TokenTypeEmbedding::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const Shape tokens{input.shape()[0], input.shape()[1]};
  const IndexTensor* given = named_input(*this, options_.input, kTokenTypes);
  if (given == nullptr) {
    // One vector for all: its row is added to each token.
    return add(input, embedding(IndexTensor({1}, {0}), weight_));
  }
  if (given->shape() != tokens) {
    throw ShapeError(
        fmt::format("layer '{}' (token_type_embedding): '{}' has shape {}, the tokens {}", path(),
                    options_.input, given->shape().to_string(), tokens.to_string()));
  }
  try {
    return add(input, embedding(*given, weight_));
  } catch (const DataError& error) {
    throw DataError(fmt::format("layer '{}', {}: {}", path(), options_.input, error.what()));
  }
}

namespace {

LayerPtr make_token_type_embedding(const Config& options, const Shape& input) {
  const auto types = options.get<int64_t>("types", 2);
  return make_at<TokenTypeEmbedding>(
      options, {.types = require_at_least(options, "types", types, 1),
                .features = read_features(options, "features", input),
                .input = options.get<std::string>("input", "token_type_ids"),
                .init = read_embedding_init(options, {WeightInit::Normal, 1.0})});
}

std::string write_token_types(OnnxGraph& graph, const TokenTypeEmbedding& layer,
                              const std::string& x, const Shape&) {
  const std::string table = graph.parameter(*layer.weight());
  const std::string& types = layer.options().input;  // without them, all types are 0
  const std::string ids = graph.has_input(types) ? types : graph.integers({0});
  return graph.add("Add", {x, graph.add("Gather", {table, ids}, {{"axis", int64_t{0}}})});
}

UnitAxis units_of_token_type_embedding(UnitGraph& graph, const TokenTypeEmbedding& layer,
                                       const UnitAxis& input, const Shape& example) {
  const UnitGraph::Units units = graph.along(layer, input, example, 1);
  graph.gives(layer.weight(), 1, units);
  graph.counts(layer, "features", units);
  return {1, units};
}

}  // namespace

void register_token_type_embedding(LayerRegistry& registry) {
  registry.add("token_type_embedding",
               "adds a vector for each token's type: types (2), input, features, init",
               {.make = make_token_type_embedding,
                .onnx = onnx_form(write_token_types),
                .units = unit_form(units_of_token_type_embedding)});
}

}  // namespace lacuna
