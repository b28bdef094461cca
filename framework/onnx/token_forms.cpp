// Layers of sequences of tokens.
#include <cmath>
#include <limits>

#include "lacuna/framework/onnx/layer_forms.hpp"
#include "lacuna/layers/tokens/attention.h"
#include "lacuna/layers/tokens/class_token.h"
#include "lacuna/layers/tokens/patch_embedding.h"
#include "lacuna/layers/tokens/position_embedding.h"
#include "lacuna/layers/tokens/rotary.h"
#include "lacuna/layers/tokens/token_embedding.h"
#include "lacuna/layers/tokens/token_pooling.h"
#include "lacuna/layers/tokens/token_type_embedding.h"

namespace lacuna {
namespace {

// The rows of a table that ids name.
std::string rows(OnnxGraph& graph, const std::string& table, const std::string& ids) {
  return graph.add("Gather", {table, ids}, {{"axis", int64_t{0}}});
}

std::string write_token_embedding(OnnxGraph& graph, const TokenEmbedding& layer,
                                  const std::string& ids, const Shape&) {
  return rows(graph, graph.parameter(*layer.weight()), ids);
}

std::string write_token_types(OnnxGraph& graph, const TokenTypeEmbedding& layer,
                              const std::string& x, const Shape&) {
  const std::string table = graph.parameter(*layer.weight());
  const std::string& types = layer.options().input;
  const bool is_given = graph.has_input(types);  // else all are of type 0
  return graph.add("Add", {x, rows(graph, table, is_given ? types : graph.integers({0}))});
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

std::string write_class_token(OnnxGraph& graph, const ClassToken& layer, const std::string& x,
                              const Shape&) {
  const std::string shape =
      graph.add("Concat", {graph.size(x, 0), graph.integers({1, layer.token()->shape()[2]})},
                {{"axis", int64_t{0}}});
  const std::string tokens = graph.add("Expand", {graph.parameter(*layer.token()), shape});
  return graph.add("Concat", {tokens, x}, {{"axis", int64_t{1}}});
}

std::string write_patches(OnnxGraph& graph, const PatchEmbedding& layer, const std::string& x,
                          const Shape&) {
  const Extent patch = layer.options().patch;
  const std::vector<int64_t> sizes{patch.height, patch.width};
  OnnxGraph::Names inputs{x, graph.parameter(*layer.weight())};
  if (const ParameterPtr bias = own_parameter(layer, "bias")) {
    inputs.push_back(graph.parameter(*bias));
  }
  const std::string y = graph.add("Conv", inputs, {{"kernel_shape", sizes}, {"strides", sizes}});
  return graph.transpose(graph.reshape(y, {0, layer.options().features, -1}), {0, 2, 1});
}

// All tokens: a model that is used has no labels.
std::string write_labelled_tokens(OnnxGraph&, const LabelledTokens&, const std::string& x,
                                  const Shape&) {
  return x;
}

// 1 where the mask is not 0, as floats.
std::string ones_of(OnnxGraph& graph, const std::string& mask) {
  return graph.cast(graph.cast(mask, OnnxType::Bool), OnnxType::Float);
}

// Counted from the end, the token is the one up to which there are as many, but for those after it,
// as there are in all: a sum over all tokens, of which it alone counts.
std::string write_select_token(OnnxGraph& graph, const SelectToken& layer, const std::string& x,
                               const Shape&) {
  const auto& [index, mask] = layer.options();
  if (index >= 0 || !graph.has_input(mask)) {
    return graph.add("Gather", {x, graph.integer(index)}, {{"axis", int64_t{1}}});
  }
  const std::string is_token = graph.cast(mask, OnnxType::Bool);
  const std::string ones = graph.cast(is_token, OnnxType::Int64);
  const std::string up_to = graph.add("CumSum", {ones, graph.integer(1)});
  const std::string all =
      graph.add("ReduceSum", {ones, graph.integers({1})}, {{"keepdims", int64_t{1}}});
  const std::string number = graph.add("Add", {all, graph.integers({index + 1})});
  const std::string is_it = graph.add("And", {graph.add("Equal", {up_to, number}), is_token});
  const std::string weights = graph.unsqueeze(graph.cast(is_it, OnnxType::Float), {2});
  return graph.add("ReduceSum", {graph.add("Mul", {x, weights}), graph.integers({1})},
                   {{"keepdims", int64_t{0}}});
}

std::string write_mean_pool(OnnxGraph& graph, const MeanPool& layer, const std::string& x,
                            const Shape&) {
  const std::string& mask = layer.options().mask;
  if (!graph.has_input(mask)) {
    return graph.add("ReduceMean", {x},
                     {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  }
  const std::string weights = graph.unsqueeze(ones_of(graph, mask), {2});
  const auto sum = [&](const std::string& value) {
    return graph.add("ReduceSum", {value, graph.integers({1})}, {{"keepdims", int64_t{0}}});
  };
  // Of a sequence without tokens it is 0.
  const std::string tokens = graph.add("Max", {sum(weights), graph.scalar(1.0f)});
  return graph.add("Div", {sum(graph.add("Mul", {x, weights})), tokens});
}

// Heads of d features: [batch, T, count d] → [batch, count, T, d].
std::string heads_of(OnnxGraph& graph, const std::string& x, int64_t count, int64_t d) {
  return graph.transpose(graph.reshape(x, {0, 0, count, d}), {0, 2, 1, 3});
}

// Each head of keys or values as often as query heads use it.
std::string repeated(OnnxGraph& graph, const std::string& x, int64_t times, int64_t heads,
                     int64_t d) {
  if (times == 1) return x;
  const std::string copies =
      graph.add("Expand", {graph.unsqueeze(x, {2}), graph.integers({1, 1, times, 1, 1})});
  return graph.reshape(copies, {0, heads, -1, d});
}

// Which keys a query sees, [T, T] or [batch, 1, 1, T] or both; empty where it sees all.
std::string visible_keys(OnnxGraph& graph, const Attention& layer, const std::string& qkv) {
  std::string visible;
  if (layer.options().causal) {
    const std::string at = graph.positions(qkv);
    visible = graph.add("LessOrEqual", {graph.unsqueeze(at, {0}), graph.unsqueeze(at, {1})});
  }
  if (graph.has_input(layer.options().mask)) {
    const std::string seen =
        graph.unsqueeze(graph.cast(layer.options().mask, OnnxType::Bool), {1, 2});
    visible = visible.empty() ? seen : graph.add("And", {visible, seen});
  }
  return visible;
}

std::string write_attention(OnnxGraph& graph, const Attention& layer, const std::string& qkv,
                            const Shape& example) {
  const int64_t heads = layer.options().heads;
  const int64_t kv_heads = layer.options().kv_heads == 0 ? heads : layer.options().kv_heads;
  const int64_t d = example.features() / (heads + 2 * kv_heads);
  const double scale = layer.options().scale.value_or(1.0 / std::sqrt(static_cast<double>(d)));
  const OnnxGraph::Names parts = graph.split(qkv, {heads * d, kv_heads * d, kv_heads * d}, -1);
  const auto of_keys = [&](const std::string& part) {
    return repeated(graph, heads_of(graph, part, kv_heads, d), heads / kv_heads, heads, d);
  };
  const std::string keys = graph.transpose(of_keys(parts[1]), {0, 1, 3, 2});
  std::string scores =
      graph.add("Mul", {graph.add("MatMul", {heads_of(graph, parts[0], heads, d), keys}),
                        graph.scalar(static_cast<float>(scale))});
  const std::string visible = visible_keys(graph, layer, qkv);
  if (!visible.empty()) {
    const std::string lowest = graph.scalar(std::numeric_limits<float>::lowest());
    scores = graph.add("Where", {visible, scores, lowest});
  }
  std::string weights = graph.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (!visible.empty()) {  // a query that sees none gets zeros
    weights = graph.add("Where", {visible, weights, graph.scalar(0.0f)});
  }
  const std::string y = graph.add("MatMul", {weights, of_keys(parts[2])});
  return graph.reshape(graph.transpose(y, {0, 2, 1, 3}), {0, 0, heads * d});
}

// Pairs (i, i + d/2) of queries and keys turned by angles [T, 1, d / 2].
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

}  // namespace

void add_token_forms(LayerForms& forms) {
  add_form<Attention>(forms, write_attention);
  add_form<ClassToken>(forms, write_class_token);
  add_form<LabelledTokens>(forms, write_labelled_tokens);
  add_form<MeanPool>(forms, write_mean_pool);
  add_form<PatchEmbedding>(forms, write_patches);
  add_form<PositionEmbedding>(forms, write_positions);
  add_form<Rotary>(forms, write_rotary);
  add_form<SelectToken>(forms, write_select_token);
  add_form<TokenEmbedding>(forms, write_token_embedding);
  add_form<TokenTypeEmbedding>(forms, write_token_types);
}

}  // namespace lacuna
