#include "lacuna/layers/tokens/token_embedding.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/tokens/embedding.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {

Initializer embedding_initializer(std::string_view layer, const WeightDraw& init) {
  if (!init.zero_bias()) {  // all other ways need a fan-in
    throw ConfigError(
        fmt::format("{}: an embedding has no fan-in; its init is zeros, or a map {{type: normal "
                    "or truncated_normal, std}}",
                    layer));
  }
  return make_initializer(init, 1, 1);
}

TokenEmbedding::TokenEmbedding(const Options& options) : options_(options) {
  if (options.vocab_size < 1 || options.features < 1) {
    throw ConfigError(
        fmt::format("token_embedding: vocab_size and features must be at least 1, found {} and {}",
                    options.vocab_size, options.features));
  }
  if (options.padding_id < -1 || options.padding_id >= options.vocab_size) {
    throw ConfigError(fmt::format("token_embedding: padding_id {} is not in a vocabulary of {} ids",
                                  options.padding_id, options.vocab_size));
  }
  weight_ = register_parameter(
      "weight",
      std::make_shared<Parameter>(Shape{options.vocab_size, options.features},
                                  embedding_initializer("token_embedding", options.init)));
  weight_->use = WeightUse::Embedding;
  weight_->sparse_gradient = options.sparse_gradient;
}

Shape TokenEmbedding::output_shape(const Shape& input) const {
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes.push_back(options_.features);
  if (input.rank() > 1) {
    throw ShapeError(fmt::format(
        "layer '{}' (token_embedding): a weight of shape {} needs examples of ids [T], found {}",
        path(), weight_->shape().to_string(), input.to_string()));
  }
  return Shape(sizes);
}

Variable TokenEmbedding::forward(const Variable& input) {
  const IndexTensor* ids = ids_of(input);
  if (ids == nullptr) {
    throw StateError(fmt::format(
        "layer '{}' (token_embedding): its input {} holds no token ids (token_ids); it is the "
        "first layer that tokens reach",
        path(), input.shape().to_string()));
  }
  try {
    return embedding(*ids, weight_, {.padding_id = options_.padding_id});
  } catch (const DataError& error) {
    throw DataError(fmt::format("layer '{}': {}", path(), error.what()));
  }
}

namespace {

LayerPtr make_token_embedding(const Config& options, const Shape&) {
  const auto padding = options.optional<int64_t>("padding_id");
  if (padding) require_at_least(options, "padding_id", *padding, 0);
  return make_at<TokenEmbedding>(options,
                                 {.vocab_size = required_size(options, "vocab_size"),
                                  .features = required_size(options, "features"),
                                  .padding_id = padding.value_or(-1),
                                  .init = read_embedding_init(options, {WeightInit::Normal, 1.0}),
                                  .sparse_gradient = options.get("sparse_gradient", false)});
}

std::string write_token_embedding(OnnxGraph& graph, const TokenEmbedding& layer,
                                  const std::string& ids, const Shape&) {
  return graph.add("Gather", {graph.parameter(*layer.weight()), ids}, {{"axis", int64_t{0}}});
}

UnitAxis units_of_token_embedding(UnitGraph& graph, const TokenEmbedding& layer, const UnitAxis&,
                                  const Shape&) {
  const UnitGraph::Units units = graph.make(layer, layer.weight()->shape()[1]);
  graph.gives(layer.weight(), 1, units);
  graph.sets(layer, "features", units);
  return {1, units};
}

}  // namespace

void register_token_embedding(LayerRegistry& registry) {
  registry.add("token_embedding",
               "a vector for each token: vocab_size, features, padding_id, init, sparse_gradient",
               {.make = make_token_embedding,
                .has_sparse_gradient = true,
                .vocabulary_key = "vocab_size",
                .onnx = onnx_form(write_token_embedding),
                .units = unit_form(units_of_token_embedding)});
}

}  // namespace lacuna
