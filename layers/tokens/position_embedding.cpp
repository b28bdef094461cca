#include "lacuna/layers/tokens/position_embedding.h"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/autograd/tokens/embedding.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/decoding.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/tokens/token_embedding.h"

namespace lacuna {
namespace {

Tensor sinusoids(int64_t positions, int64_t features) {
  Tensor table = Tensor::empty({positions, features});
  float* row = table.mutable_data();
  for (int64_t t = 0; t < positions; ++t, row += features) {
    for (int64_t j = 0; j < features; ++j) {
      const double exponent = static_cast<double>(j / 2 * 2) / static_cast<double>(features);
      const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
      row[j] = static_cast<float>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

IndexTensor positions_from(int64_t first, int64_t count) {
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), first);
  return IndexTensor({count}, std::move(positions));
}

LayerPtr make_position_embedding(const Config& options, const Shape& input) {
  const auto form = options.get<std::string>("form", "layer");
  if (form != "layer" && form != "parameter") options.at("form").fail("layer or parameter");
  const auto kind = options.get<std::string>("kind", "learned");
  if (kind != "learned" && kind != "sinusoidal") options.at("kind").fail("learned or sinusoidal");
  PositionEmbedding::Options layer{.positions = required_size(options, "positions"),
                                   .features = read_features(options, "features", input),
                                   .form = form == "layer" ? PositionEmbedding::Form::Layer
                                                           : PositionEmbedding::Form::Parameter};
  if (kind == "sinusoidal") {
    layer.kind = PositionEmbedding::Kind::Sinusoidal;
  } else {
    layer.init = read_embedding_init(options, {WeightInit::Normal, 1.0});
  }
  return make_at<PositionEmbedding>(options, layer);
}

std::string write_positions(OnnxGraph& graph, const PositionEmbedding& layer, const std::string& x,
                            const Shape&) {
  const bool is_bare = layer.options().form == PositionEmbedding::Form::Parameter;
  const std::string table = layer.weight() != nullptr ? graph.parameter(*layer.weight())
                                                      : graph.floats("vectors", layer.vectors());
  const bool has_batch = is_bare && layer.weight() != nullptr;
  return graph.add("Add", {x, graph.add("Slice", {table, graph.integers({0}), graph.size(x, 1),
                                                  graph.integers({has_batch ? 1 : 0})})});
}

UnitAxis units_of_position_embedding(UnitGraph& graph, const PositionEmbedding& layer,
                                     const UnitAxis& input, const Shape& example) {
  const UnitGraph::Units units = graph.along(layer, input, example, 1);
  if (layer.weight() == nullptr) {
    graph.fix(units, unit_reason(layer, "adds fixed vectors of that size"));
  } else {
    graph.gives(layer.weight(), layer.weight()->shape().rank() - 1, units);
  }
  graph.counts(layer, "features", units);
  return {1, units};
}

}  // namespace

PositionEmbedding::PositionEmbedding(const Options& options) : options_(options) {
  const int64_t positions = options.positions, features = options.features;
  if (positions < 1 || features < 1) {
    throw ConfigError(fmt::format(
        "position_embedding: positions and features must be at least 1, found {} and {}", positions,
        features));
  }
  if (options.kind == Kind::Sinusoidal) {
    fixed_ = sinusoids(positions, features);
    return;
  }
  const Initializer initializer = embedding_initializer("position_embedding", options.init);
  const bool is_bare = options.form == Form::Parameter;
  const Shape shape = is_bare ? Shape{1, positions, features} : Shape{positions, features};
  weight_ =
      register_parameter(is_bare ? "" : "weight", std::make_shared<Parameter>(shape, initializer));
  weight_->use = WeightUse::Embedding;
}

Shape PositionEmbedding::output_shape(const Shape& input) const {
  if (input.rank() != 2 || input[1] != options_.features) {
    throw ShapeError(
        fmt::format("layer '{}' (position_embedding): vectors of shape {} need examples of shape "
                    "[T, {}], found {}",
                    path(), Shape{options_.positions, options_.features}.to_string(),
                    options_.features, input.to_string()));
  }
  if (input[0] > options_.positions) {
    throw ShapeError(
        fmt::format("layer '{}' (position_embedding): there are {} positions, the sequence has {}: "
                    "shape {}; give more positions (n_positions in gpt2, max_position_embeddings "
                    "in bert), or shorter sequences (data.context, data.max_length)",
                    path(), options_.positions, input[0], input.to_string()));
  }
  return input;
}

Variable PositionEmbedding::forward(const Variable& input) {
  const Shape shape = output_shape(input.shape().without_batch());  // [T, features]
  const DecodingCache* cache = decoding_cache();
  const int64_t first = cache == nullptr ? 0 : cache->length();
  if (first + shape[0] > options_.positions) {
    throw ShapeError(
        fmt::format("layer '{}' (position_embedding): there are {} positions, the text has {}",
                    path(), options_.positions, first + shape[0]));
  }
  if (weight_ == nullptr) {
    const auto begin = static_cast<size_t>(first * shape[1]);
    const Tensor rows =
        Tensor::from(shape, fixed_.storage().subspan(begin, static_cast<size_t>(shape.numel())));
    return add(input, rows);
  }
  const Variable rows =
      options_.form == Form::Layer
          ? embedding(positions_from(first, shape[0]), weight_)
          : embedding(positions_from(first, shape[0]),
                      reshape(Variable::of(weight_), {options_.positions, options_.features}));
  return add(input, rows);
}

void register_position_embedding(LayerRegistry& registry) {
  registry.add(
      "position_embedding",
      "adds a vector for each position: positions, form (layer, parameter), kind (learned, "
      "sinusoidal), features, init",
      {.make = make_position_embedding,
       .onnx = onnx_form(write_positions),
       .units = unit_form(units_of_position_embedding)});
}

}  // namespace lacuna
