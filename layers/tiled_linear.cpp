#include "lacuna/layers/tiled_linear.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "lacuna/framework/autograd/classes/tiled_logits.hpp"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {

TiledLinear::TiledLinear(const Options& options) : options_(options) {
  const int64_t in = options.linear.in_features, out = options.linear.out_features;
  if (in < 1 || out < 1 || options.tile < 1) {
    throw ConfigError(fmt::format(
        "tiled_linear: in_features, out_features and tile must be at least 1, found {}, {} and {}",
        in, out, options.tile));
  }
  for (int64_t first = 0; first < out; first += options.tile) {
    Linear::Options own = options.linear;
    own.out_features = std::min(options.tile, out - first);
    auto tile = std::make_unique<Linear>(own);
    tiles_.push_back(tile.get());
    register_module(std::to_string(tiles_.size() - 1), std::move(tile));
  }
}

Shape TiledLinear::output_shape(const Shape& input) const {
  if (input.rank() != 1 || input[0] != options_.linear.in_features) {
    throw ShapeError(
        fmt::format("layer '{}' (tiled_linear): its weights need examples of shape [{}], found {}",
                    path(), options_.linear.in_features, input.to_string()));
  }
  return Shape{options_.linear.out_features};
}

std::optional<std::vector<Shape>> TiledLinear::child_inputs(const Shape& input) const {
  return std::vector<Shape>(tiles_.size(), input);
}

std::vector<ParameterPtr> TiledLinear::tile_weights() const {
  std::vector<ParameterPtr> weights;
  for (const Linear* tile : tiles_) weights.push_back(tile->weight());
  return weights;
}

// Where somebody watches or changes what the layers are given or give.
bool TiledLinear::runs_by_layers() const {
  return weight_input_watcher() != nullptr || std::ranges::any_of(tiles_, [](const Linear* tile) {
           return tile->int8() != nullptr || tile->has_input_transforms() ||
                  tile->has_output_transforms();
         });
}

Variable TiledLinear::forward(const Variable& input) {
  if (runs_by_layers()) {
    std::vector<Variable> outputs;
    for (Linear* tile : tiles_) outputs.push_back((*tile)(input));
    return concatenate(outputs, -1);
  }
  std::vector<ClassTile> tiles;
  for (const Linear* tile : tiles_) {
    const ParameterPtr& weight = tile->weight();
    const ParameterPtr& bias = tile->bias();
    tiles.push_back({.weight = weight->as_weight(weight->trainable ? weight : nullptr),
                     .bias = bias != nullptr ? Variable::of(bias) : Variable()});
  }
  return tiled_logits(input, std::move(tiles));
}

namespace {

LayerPtr make_tiled_linear(const Config& options, const Shape& input) {
  return make_at<TiledLinear>(
      options, {.linear = Linear::Options::from_config(options, input),
                .tile = require_at_least(options, "tile",
                                         options.get("tile", TiledLinear::Options().tile), 1)});
}

std::string write_tiled_linear(OnnxGraph& graph, const TiledLinear& layer, const std::string& x,
                               const Shape&) {
  OnnxGraph::Names parts;
  for (const auto& [name, tile] : layer.children()) {
    OnnxGraph::Names inputs{x, graph.parameter(*own_parameter(*tile, "weight"))};
    const ParameterPtr bias = own_parameter(*tile, "bias");
    if (bias != nullptr) inputs.push_back(graph.parameter(*bias));
    parts.push_back(graph.add("Gemm", inputs, {{"transB", int64_t{1}}}));
  }
  return graph.add("Concat", parts, {{"axis", int64_t{1}}});
}

// Inputs are columns of all tiles. Outputs stay, because tiles but the last have equal sizes.
UnitAxis units_of_tiled_linear(UnitGraph& graph, const TiledLinear& layer, const UnitAxis& input,
                               const Shape& example) {
  const int dim = example.rank() - 1;
  const UnitGraph::Units in = graph.along(layer, input, example, dim);
  const UnitGraph::Units out = graph.make(layer, layer.output_shape(example)[dim]);
  graph.fix(out, unit_reason(layer, "divides its outputs into tiles of equal sizes"));
  auto first = out.begin();
  for (const auto& [name, tile] : layer.children()) {
    const ParameterPtr weight = own_parameter(*tile, "weight");
    if (tile->has_input_transforms() || tile->has_output_transforms()) {
      graph.fix(in, unit_reason(*tile, "has sparsified activations"));
    }
    const UnitGraph::Units own(first, first + weight->shape()[0]);
    first += weight->shape()[0];
    graph.takes(weight, 1, in);
    graph.gives(weight, 0, own);
    graph.gives(own_parameter(*tile, "bias"), 0, own);
  }
  graph.counts(layer, "in_features", in);
  return {dim, out};
}

}  // namespace

void register_tiled_linear(LayerRegistry& registry) {
  registry.add("tiled_linear",
               "linear with very many outputs, in tiles: out_features, in_features, bias, init, "
               "init_fan_in, tile",
               {.make = make_tiled_linear,
                .has_fan_in = true,
                .outputs_key = "out_features",
                .onnx = onnx_form(write_tiled_linear),
                .units = unit_form(units_of_tiled_linear)});
}

}  // namespace lacuna
