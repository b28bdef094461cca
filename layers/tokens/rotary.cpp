#include "lacuna/layers/tokens/rotary.h"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <string>

#include "lacuna/framework/autograd/tokens/attention.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/decoding.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/tokens/head_units.hpp"

namespace lacuna {

Rotary::Rotary(const Options& options) : options_(options) {
  const int64_t h = options.heads, kv = options.kv_heads;
  if (h < 1 || kv < 0 || (kv > 0 && h % kv != 0)) {
    throw ConfigError(fmt::format(
        "rotary: heads must be at least 1 and a multiple of kv_heads, found {} and {}", h, kv));
  }
  if (!(options.base > 0.0 && std::isfinite(options.base))) {
    throw ConfigError(fmt::format("rotary: base must be above 0, found {}", options.base));
  }
}

Shape Rotary::output_shape(const Shape& input) const {
  const std::string name = fmt::format("layer '{}' (rotary)", path());
  if (input.rank() != 2) {
    throw ShapeError(
        fmt::format("{}: needs examples of shape [T, (heads + 2 kv_heads) d], found {}", name,
                    input.to_string()));
  }
  const int64_t d = head_features(name, input, options_.heads, options_.kv_heads);
  if (d % 2 != 0) {
    throw ShapeError(fmt::format("{}: needs an even number of features per head, found {} of {}",
                                 name, d, input.to_string()));
  }
  return input;
}

Variable Rotary::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const DecodingCache* cache = decoding_cache();
  return rotary(input, {.heads = options_.heads,
                        .kv_heads = options_.kv_heads,
                        .base = options_.base,
                        .first_position = cache == nullptr ? 0 : cache->length()});
}

namespace {

LayerPtr make_rotary(const Config& options, const Shape&) {
  const Heads heads = read_heads(options);
  return make_at<Rotary>(
      options,
      {.heads = heads.of_queries, .kv_heads = heads.of_keys, .base = options.get("base", 10000.0)});
}

// Rotates pairs (i, i + d/2) of queries and keys by angles [T, 1, d / 2].
std::string write_rotary(OnnxGraph& graph, const Rotary& layer, const std::string& qkv,
                         const Shape& example) {
  const int64_t heads = layer.options().heads;
  const int64_t kv_heads = layer.options().kv_heads == 0 ? heads : layer.options().kv_heads;
  const int64_t d = example.features() / (heads + 2 * kv_heads), turned = heads + kv_heads;
  Tensor frequencies = Tensor::empty({1, 1, d / 2});
  for (int64_t i = 0; i < d / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(d);
    frequencies.mutable_data()[i] = static_cast<float>(std::pow(layer.options().base, exponent));
  }
  const std::string at = graph.unsqueeze(graph.cast(graph.positions(qkv), OnnxType::Float), {1, 2});
  const std::string angles = graph.add("Mul", {at, graph.floats("frequencies", frequencies)});
  const std::string cosines = graph.add("Cos", {angles}), sines = graph.add("Sin", {angles});

  const OnnxGraph::Names parts = graph.split(qkv, {turned * d, kv_heads * d}, -1);
  const OnnxGraph::Names pairs =
      graph.split(graph.reshape(parts[0], {0, 0, turned, d}), {d / 2, d / 2}, -1);
  const auto product = [&](const std::string& a, const std::string& b) {
    return graph.add("Mul", {a, b});
  };
  const std::string first =
      graph.add("Sub", {product(pairs[0], cosines), product(pairs[1], sines)});
  const std::string second =
      graph.add("Add", {product(pairs[1], cosines), product(pairs[0], sines)});
  const std::string both = graph.add("Concat", {first, second}, {{"axis", int64_t{-1}}});
  return graph.add("Concat", {graph.reshape(both, {0, 0, turned * d}), parts[1]},
                   {{"axis", int64_t{-1}}});
}

UnitAxis units_of_rotary(UnitGraph& graph, const Rotary& layer, const UnitAxis& input,
                         const Shape& example) {
  const Rotary::Options& o = layer.options();
  const int dim = example.rank() - 1;
  const UnitGraph::Units qkv = graph.along(layer, input, example, dim);
  unite_heads(graph, layer, qkv, o.heads, o.kv_heads);
  return {dim, qkv};
}

}  // namespace

void register_rotary(LayerRegistry& registry) {
  registry.add(
      "rotary", "turns queries and keys by their positions: heads, kv_heads, base (10000)",
      {.make = make_rotary, .onnx = onnx_form(write_rotary), .units = unit_form(units_of_rotary)});
}

}  // namespace lacuna
