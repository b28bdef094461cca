#include "lacuna/layers/tokens/embedding_bag.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/tokens/embedding_bag.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/tokens/token_embedding.h"

namespace lacuna {

EmbeddingBag::EmbeddingBag(const Options& options) : options_(options) {
  if (options.in_features < 1 || options.out_features < 1) {
    throw ConfigError(fmt::format(
        "embedding_bag: in_features and out_features must be at least 1, found {} and {}",
        options.in_features, options.out_features));
  }
  weight_ = register_parameter(
      "weight", std::make_shared<Parameter>(Shape{options.in_features, options.out_features},
                                            embedding_initializer("embedding_bag", options.init)));
  weight_->use = WeightUse::Embedding;
  weight_->sparse_gradient = options.sparse_gradient;
  if (!options.bias) return;
  bias_ = register_parameter(
      "bias", std::make_shared<Parameter>(Shape{options.out_features}, Initializer::constant(0.0)));
}

RequestedInput EmbeddingBag::requested_input() const {
  return {
      .name = kFeatureIds, .usual = "", .below = options_.in_features, .below_key = "in_features"};
}

Shape EmbeddingBag::output_shape(const Shape& input) const {
  if (input.rank() != 1 || input[0] != options_.in_features) {
    throw ShapeError(fmt::format(
        "layer '{}' (embedding_bag): a weight of shape {} needs examples of shape [{}], found {}",
        path(), weight_->shape().to_string(), options_.in_features, input.to_string()));
  }
  return Shape{options_.out_features};
}

Variable EmbeddingBag::forward(const Variable& input) {
  const IndexTensor* ids = named_input(kFeatureIds);
  if (ids == nullptr || ids->shape() != input.shape()) {
    throw StateError(fmt::format(
        "layer '{}' (embedding_bag): its input {} comes without the '{}' of sparse examples; it is "
        "the first layer of models for data of type labelled_sparse",
        path(), input.shape().to_string(), kFeatureIds));
  }
  const Variable y = embedding_bag(*ids, input.value(), weight_);
  return bias_ == nullptr ? y : add(y, Variable::of(bias_));
}

namespace {

LayerPtr make_embedding_bag(const Config& options, const Shape& input) {
  return make_at<EmbeddingBag>(options,
                               {.in_features = read_features(options, "in_features", input),
                                .out_features = required_size(options, "out_features"),
                                .bias = options.get("bias", true),
                                .init = read_embedding_init(options, {WeightInit::Normal, 0.1}),
                                .sparse_gradient = options.get("sparse_gradient", true)});
}

// The table's rows belong to the model's inputs, none of which is removed.
UnitAxis units_of_embedding_bag(UnitGraph& graph, const EmbeddingBag& layer, const UnitAxis& input,
                                const Shape&) {
  graph.fix(input.units, unit_reason(layer, "has a row of its table for each feature"));
  const UnitGraph::Units units = graph.make(layer, layer.weight()->shape()[1]);
  graph.gives(layer.weight(), 1, units);
  graph.gives(layer.bias(), 0, units);
  graph.sets(layer, "out_features", units);
  return {0, units};
}

}  // namespace

void register_embedding_bag(LayerRegistry& registry) {
  registry.add("embedding_bag",
               "linear for sparse examples: out_features, in_features, bias, init, sparse_gradient",
               {.make = make_embedding_bag,
                .has_sparse_gradient = true,
                .units = unit_form(units_of_embedding_bag)});
}

}  // namespace lacuna
