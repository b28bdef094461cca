// Models of each kind of dependency between layers, some of their units chosen at random, and what
// is left of them.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/onnx/onnx_models.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/shrink/cut_state.hpp"
#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/framework/shrink/smaller_model.hpp"
#include "lacuna/framework/shrink/unit_choice.hpp"

namespace lacuna::shrink_tests {

struct SmallModel {
  const char* name;
  std::string yaml;
  Shape example;
  int64_t vocabulary = 0;
};

inline std::ostream& operator<<(std::ostream& out, const SmallModel& model) {
  return out << model.name;
}

inline const std::vector<SmallModel>& small_models() {
  static const std::vector<SmallModel> models = {
      {"mlp",
       "[{type: linear, out_features: 12}, relu, {type: linear, out_features: 9, bias: false},\n"
       " {type: batch_norm}, sigmoid, {type: linear, out_features: 7}, silu, {type: linear, "
       "out_features: 4}]",
       {7}},
      {"flatten",
       "[{type: conv2d, out_channels: 6, kernel: 3, padding: 1, bias: false}, {type: batch_norm},\n"
       " relu, {type: max_pool, kernel: 2}, {type: conv2d, out_channels: 5, kernel: 3}, gelu,\n"
       " flatten, {type: linear, out_features: 8}, tanh, {type: linear, out_features: 3}]",
       {2, 8, 8}},
      {"depthwise",
       "[{type: conv2d, out_channels: 6, kernel: 1}, relu,\n"
       " {type: conv2d, out_channels: 12, kernel: 3, padding: 1, groups: 6}, {type: batch_norm},\n"
       " relu, {type: conv2d, out_channels: 5, kernel: 1}, global_average_pool,\n"
       " {type: linear, out_features: 3}]",
       {2, 6, 6}},
      {"concatenation",
       "[{type: conv2d, out_channels: 4, kernel: 1}, relu,\n"
       " {type: parallel, layers: [{type: conv2d, out_channels: 5, kernel: 3, padding: 1},\n"
       "  {type: sequential, name: deep, layers: [{type: conv2d, out_channels: 6, kernel: 1}, "
       "relu,\n"
       "   {type: conv2d, out_channels: 7, kernel: 3, padding: 1}]}, relu]},\n"
       " {type: batch_norm}, {type: conv2d, out_channels: 6, kernel: 3}, global_average_pool,\n"
       " {type: linear, out_features: 3}]",
       {2, 6, 6}},
      {"sequences",
       "[{type: conv1d, out_channels: 6, kernel: 5, padding: 2}, relu,\n"
       " {type: conv1d, out_channels: 8, kernel: 3}, {type: avg_pool, kernel: 2}, {type: "
       "batch_norm},\n global_average_pool, {type: linear, out_features: 4}]",
       {4, 20}},
      {"padded_shortcuts", "{type: cifar_resnet, depth: 8, num_labels: 10}", {3, 16, 16}},
      {"wide",
       "{define: {block: {arguments: {channels: null, stride: 1}, layers: [{type: batch_norm}, "
       "relu,\n"
       "  {type: residual, shortcut: {type: conv2d, name: shortcut, out_channels: $channels, "
       "kernel: 1,\n   stride: $stride, bias: false}, layers: [{type: conv2d, name: conv1, "
       "out_channels: $channels,\n   kernel: 3, stride: $stride, padding: 1, bias: false}, {type: "
       "batch_norm, name: bn2},\n   relu, {type: conv2d, name: conv2, out_channels: $channels, "
       "kernel: 3, padding: 1, bias: false}]}]}},\n"
       " layers: [{type: conv2d, name: conv1, out_channels: 4, kernel: 3, padding: 1, bias: "
       "false},\n"
       "  {type: block, name: layer1, repeat: 2, channels: 8},\n"
       "  {type: block, name: layer2, repeat: 2, channels: 12, first: {stride: 2}},\n"
       "  {type: batch_norm}, relu, global_average_pool, {type: linear, out_features: 3}]}",
       {3, 8, 8}},
      {"gpt2",
       "{type: gpt2, vocab_size: 23, n_positions: 12, n_embd: 16, n_layer: 2, n_head: 4}",
       {12},
       23},
      {"bert",
       "{type: bert, vocab_size: 23, max_position_embeddings: 12, hidden_size: 16, "
       "num_hidden_layers: 2,\n num_attention_heads: 4, intermediate_size: 24, num_labels: 3}",
       {12},
       23},
      {"llama",
       "{type: llama, vocab_size: 23, max_position_embeddings: 12, hidden_size: 32, "
       "num_hidden_layers: 2,\n num_attention_heads: 8, num_key_value_heads: 4, "
       "intermediate_size: 24}",
       {12},
       23},
      {"vit",
       "{type: vit, image_size: 16, patch_size: 4, hidden_size: 16, num_hidden_layers: 1,\n"
       " num_attention_heads: 4, intermediate_size: 24, num_labels: 5}",
       {3, 16, 16}},
      {"tied_embeddings",
       "[{type: token_embedding, name: table, vocab_size: 23, features: 16},\n"
       " {type: position_embedding, positions: 12}, {type: residual, layers: [{type: linear,\n"
       "  out_features: 20}, gelu, {type: linear, out_features: 16}]},\n"
       " {type: linear, name: head, tied_to: table, bias: false}]",
       {12},
       23},
      {"tiles",
       "[{type: linear, out_features: 12}, relu, {type: tiled_linear, out_features: 11, tile: 4}]",
       {7}},
      {"features",
       "[{type: embedding_bag, out_features: 12}, relu,\n"
       " {type: tiled_linear, out_features: 9, tile: 4, bias: false}]",
       {30}}};
  return models;
}

/// Four examples of a model, which have all features where these are sparse.
inline Batch make_examples(const SmallModel& small) {
  Batch batch = onnx_tests::make_batch(4, small.example, small.vocabulary);
  if (small.yaml.find("embedding_bag") == std::string::npos) return batch;
  std::vector<int64_t> ids(static_cast<size_t>(batch.inputs.numel()));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) % small.example[0];
  batch.named[kFeatureIds] = IndexTensor(batch.inputs.shape(), ids);
  return batch;
}

/// A model with masks, what it was built of, and its units, of which some shall go.
struct Cut {
  explicit Cut(const SmallModel& small)
      : layers(model_layers(parse_yaml(small.yaml, "model"))),
        model(onnx_tests::make_model(small.yaml, small.example)),
        units(*model, small.example) {
    build_model(layers, small.example);  // fills in what layers leave out
    std::vector<double> scores(static_cast<size_t>(units.count));
    const std::vector<float> values = random_values(units.count, "scores");
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = values[i];
    const std::vector<ModuleRow> rows = module_rows(*model, small.example);
    const std::vector<int32_t> order = removal_order(
        units, rows, scores, {.shares = ShrinkShares::Uniform, .keep_at_least = 0.25});
    removed = order.size() * 2 / 3;
    kept = without_first(units, order, removed);
  }

  /// The weights of units that go are zero from now on.
  void mask() {
    for (const UnitGraph::Slice& slice : units.slices) {
      Parameter& parameter = *slice.parameter;
      Tensor dense = parameter.to_dense();
      float* values = dense.mutable_data();
      int64_t inner = 1;
      for (int i = slice.dim + 1; i < parameter.shape().rank(); ++i) inner *= parameter.shape()[i];
      for (int64_t i = 0; i < parameter.numel(); ++i) {
        const int64_t index = i / inner % parameter.shape()[slice.dim];
        const int32_t unit = slice.units[static_cast<size_t>(index)];
        if (kept[static_cast<size_t>(unit)] == 0) values[i] = 0.0f;
      }
      parameter.assign(dense);
    }
  }

  /// The smaller model, in evaluation mode.
  std::unique_ptr<Sequential> build(const Shape& example) {
    section = Config::map({{"layers", smaller_layers(layers, *model, units, kept)}});
    auto smaller = build_model(model_layers(section), example);
    smaller->load_state_dict(cut_model_state(*model, units, kept));
    smaller->eval();
    return smaller;
  }

  ModelLayers layers;
  std::unique_ptr<Sequential> model;
  ModelUnits units;
  KeptUnits kept;
  size_t removed = 0;
  Config section = {};
};

inline void expect_equal(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(found.shape(), expected.shape());
  const std::vector<float> a = found.to_vector(), b = expected.to_vector();
  float largest = 1.0f;
  for (const float value : b) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5f * largest) << i;
}

}  // namespace lacuna::shrink_tests
