#include "lacuna/layers/semi_sparse_activation.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/autograd/ops/keep.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {
namespace {

// Counted from the end: the channels of images, else the last dimension.
int feature_dimension(const Shape& example) { return example.rank() == 3 ? -3 : -1; }

LayerPtr make_semi_sparse_activation(const Config& options, const Shape&) {
  const auto m = require_at_least(options, "m", options.get<int64_t>("m", 4), 1);
  const auto n = require_at_least(options, "n", options.get<int64_t>("n", 2), 1);
  if (m > 16) options.at("m").fail("a number from 1 to 16");
  if (n > m) options.at("n").fail(fmt::format("at most m, which is {}", m));
  return std::make_unique<SemiSparseActivation>(
      SemiSparseActivation::Options{.n = static_cast<int>(n), .m = static_cast<int>(m)});
}

// Keeps the n largest |x| of each m features; of equal ones the first, as TopK does.
std::string write_kept_features(OnnxGraph& graph, const SemiSparseActivation& layer,
                                const std::string& x) {
  const OnnxGraph::Attributes last{{"axis", int64_t{-1}}};
  const std::string cells = graph.reshape(x, {-1, layer.options().m});
  const OnnxGraph::Names top = graph.add_with_outputs(
      "TopK", {graph.add("Abs", {cells}), graph.integers({layer.options().n})}, 2, last);
  const std::string kept = graph.add("GatherElements", {cells, top[1]}, last);
  const std::string zeros = graph.add("ConstantOfShape", {graph.add("Shape", {cells})});
  const std::string y = graph.add("ScatterElements", {zeros, top[1], kept}, last);
  return graph.add("Reshape", {y, graph.add("Shape", {x})});
}

// For images, the features are the channels.
std::string write_semi_sparse(OnnxGraph& graph, const SemiSparseActivation& layer,
                              const std::string& x, const Shape& example) {
  if (example.rank() != 3) return write_kept_features(graph, layer, x);
  const std::string kept = write_kept_features(graph, layer, graph.transpose(x, {0, 2, 3, 1}));
  return graph.transpose(kept, {0, 3, 1, 2});
}

}  // namespace

SemiSparseActivation::SemiSparseActivation(const Options& options) : options_(options) {
  require_keep_nm("semi_sparse_activation", Shape{options.m}, -1, options.n, options.m);
}

Shape SemiSparseActivation::output_shape(const Shape& input) const {
  require_fit(input, feature_dimension(input));
  return input;
}

void SemiSparseActivation::require_fit(const Shape& input, int dimension) const {
  require_keep_nm("layer '" + path() + "' (semi_sparse_activation)", input, dimension, options_.n,
                  options_.m);
}

Variable SemiSparseActivation::forward(const Variable& input) {
  const Shape& shape = input.shape();
  require_fit(shape, feature_dimension(shape.without_batch()));  // the error names the layer
  return with_channels_last(
      input, [this](const Variable& x) { return keep_nm(x, options_.n, options_.m); });
}

void register_semi_sparse_activation(LayerRegistry& registry) {
  registry.add("semi_sparse_activation", "keeps the n largest |x| of each m features: n (2), m (4)",
               {.make = make_semi_sparse_activation,
                .onnx = onnx_form(write_semi_sparse),
                .units = units_fixed("keeps some of each m features")});
}

}  // namespace lacuna
