// `model.widen`: sparse networks as expensive as the dense one that is written.
#include "lacuna/framework/train/parts/widen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "throws.h"

namespace lacuna::widen_test {
namespace {

using testing::HasSubstr;

std::unique_ptr<Experiment> build(const std::string& model, const std::string& sparsity) {
  return build_experiment(parse_yaml(
      "data: {type: colour_glyphs, train_size: 40, test_size: 10}\nmodel: " + model +
          "\noptimizer: {type: sgd, lr: 0.1}\n"
          "train: {batch_size: 20, threads: 1, steps: 8, shards: 2}\n" +  // nothing is measured
          (sparsity.empty() ? "" : "sparsity: " + sparsity + "\n"),
      "e.yaml"));
}

ModelCost cost_of(const Experiment& e) {
  std::map<std::string, int64_t> nonzeros;
  for (const PlannedParameter& planned : e.plan()) nonzeros[planned.parameter] = planned.final_nnz;
  const auto count = [&](const Parameter& parameter) {
    const auto found = nonzeros.find(parameter.name());
    return found == nonzeros.end() ? parameter.numel() : found->second;
  };
  ModelCost cost;
  for (const ParameterPtr& parameter : e.model->parameters()) cost.nnz += count(*parameter);
  cost.flops = count_flops(e.rows, [&](const Parameter& parameter) {
                 return static_cast<double>(count(parameter));
               }).forward;
  return cost;
}

constexpr const char* kVit =
    "{type: vit, patch_size: 8, hidden_size: 64, num_hidden_layers: 1, num_attention_heads: 4, "
    "intermediate_size: 128, num_labels: 10";

// One unit of width more or less costs more than what is left between the two.
void expect_equal(double found, double wanted, int64_t width, int64_t unit) {
  const double ratio = 1.0 + static_cast<double>(unit) / static_cast<double>(width);
  EXPECT_LT(std::abs(found / wanted - 1.0), (ratio * ratio - 1.0) / 1.9) << width;
}

TEST(Widen, MakesEveryPatternAsExpensiveAsTheDenseModel) {
  const ModelCost dense = cost_of(*build(std::string(kVit) + "}", ""));
  for (const std::string sparsity :
       {"{sparsity: 0.8, layout: csr}", "{sparsity: 0.8, distribution: erk}",
        "{sparsity: 0.75, pattern: {type: block, rows: 16, cols: 16}}",
        "{sparsity: 0.75, pattern: {type: block, rows: 8, cols: 4}}",
        "{sparsity: 0.75, pattern: {type: block, rows: 1, cols: 4}}",
        "{pattern: {type: nm, n: 2, m: 4}}", "{pattern: {type: nm, n: 2, m: 4, group: 8}}",
        "{pattern: {type: nm, n: 1, m: 4, group: 8}}", "{algorithm: gmp, sparsity: 0.8}"}) {
    SCOPED_TRACE(sparsity);
    const auto flops = build(std::string(kVit) + ", widen: flops}", sparsity);
    const int64_t width = flops->config.peek("model.hidden_size").as<int64_t>();
    EXPECT_GT(width, 64);
    EXPECT_EQ(width % 8, 0);
    EXPECT_EQ(flops->config.peek("model.intermediate_size").as<int64_t>(), 2 * width);
    expect_equal(cost_of(*flops).flops, dense.flops, width, 16);
    const auto parameters = build(std::string(kVit) + ", widen: parameters}", sparsity);
    expect_equal(static_cast<double>(cost_of(*parameters).nnz), static_cast<double>(dense.nnz),
                 parameters->config.peek("model.hidden_size").as<int64_t>(), 16);
    EXPECT_TRUE(flops->config.peek("model.widen").is_null());
    EXPECT_THAT(flops->chosen, HasSubstr("widened: model.hidden_size 64 → "));
  }
}

// Blocks and groups that 16 is no multiple of, or that only an entry or a phase has.
TEST(Widen, TakesWidthsThatPatternsAndGroupsDivide) {
  const auto width = [](const std::string& sparsity) {
    SCOPED_TRACE(sparsity);
    const auto e = build(
        "{layers: [flatten, {type: linear, name: fc1, out_features: 96}, {type: linear, name: fc2, "
        "out_features: 96}, {type: linear, name: fc3, out_features: 10}], widen: {match: "
        "parameters, keys: [out_features]}}",
        sparsity);
    const int64_t chosen = e->config.peek("model.layers.1.out_features").as<int64_t>();
    EXPECT_GT(chosen, 96);
    EXPECT_EQ(e->config.peek("model.layers.2.out_features").as<int64_t>(), chosen);
    return chosen;
  };
  EXPECT_EQ(width("{sparsity: 0.6, pattern: {type: block, rows: 64, cols: 32}}") % 64, 0);
  EXPECT_EQ(width("{sparsity: 0.6, pattern: {type: block, rows: 12, cols: 4}}") % 48, 0);
  EXPECT_EQ(width("{pattern: {type: nm, n: 1, m: 4, group: 24}}") % 24, 0);
  EXPECT_EQ(width("{sparsity: 0.6, balance_out_groups: 3}") % 24, 0);
  EXPECT_EQ(width("[{sparsity: 0.6, pattern: {type: block, rows: 16, cols: 16}, param_filter: "
                  "fc2.weight}, {sparsity: 0.6, param_filter: fc1.weight}]") %
                16,
            0);
  EXPECT_EQ(width("{phases: [{until: 2, algorithm: dense}, {sparsity: 0.6, pattern: {type: block, "
                  "rows: 16, cols: 16}}]}") %
                16,
            0);
}

TEST(Widen, WidensConvolutions) {
  const std::string model = "{type: cifar_resnet, depth: 8, width: 16";
  const auto dense = build(model + "}", "");
  const auto sparse = build(model + ", widen: flops}", "{sparsity: 0.9}");
  const int64_t width = sparse->config.peek("model.width").as<int64_t>();
  EXPECT_EQ(width % 8, 0);
  expect_equal(cost_of(*sparse).flops, cost_of(*dense).flops, width, 8);
}

TEST(Widen, WidensArgumentsOfTemplatesAndKeysOfLayers) {
  const std::string templates =
      "layers: [flatten, {type: block, name: b1, wide: 64}, {type: block, name: b2}, {type: "
      "linear, "
      "name: fc, out_features: 10}], define: {block: {arguments: {wide: 32}, layers: [{type: "
      "linear, "
      "out_features: $wide}, relu]}}";
  const auto widened =
      build("{" + templates + ", widen: {match: flops, keys: wide}}", "{sparsity: 0.8}");
  const int64_t narrow = widened->config.peek("model.define.block.arguments.wide").as<int64_t>();
  EXPECT_GT(narrow, 32);
  EXPECT_NEAR(static_cast<double>(widened->config.peek("model.layers.1.wide").as<int64_t>()),
              2.0 * static_cast<double>(narrow), 8.0);
  expect_equal(cost_of(*widened).flops, cost_of(*build("{" + templates + "}", "")).flops, narrow,
               8);
  const std::string mlp =
      "layers: [flatten, {type: linear, name: fc1, out_features: 128}, relu, {type: linear, name: "
      "fc2, out_features: 10}]";
  const auto wide = build("{" + mlp + ", widen: {match: parameters, keys: [out_features]}}",
                          "{sparsity: 0.9, param_filter: fc1.weight}");
  EXPECT_GT(wide->config.peek("model.layers.1.out_features").as<int64_t>(), 1000);
  EXPECT_EQ(wide->config.peek("model.layers.3.out_features").as<int64_t>(), 10);
}

TEST(Widen, RefusesWhatItCannotWiden) {
  const auto refuses = [](const std::string& model, const std::string& sparsity,
                          const std::string& words) {
    expect_throws<ConfigError>([&] { build(model, sparsity); }, words);
  };
  const std::string mlp =
      "{layers: [flatten, {type: linear, name: fc1, out_features: 64}, {type: linear, name: fc2, "
      "out_features: 10}], ";
  refuses(std::string(kVit) + ", widen: bytes}", "{sparsity: 0.8}",
          "model.widen: expected flops or parameters, found 'bytes'");
  refuses(std::string(kVit) + ", widen: flops}", "",
          "model.widen: a model is widened by what sparsity saves, but there is no `sparsity`");
  refuses(std::string(kVit) + ", widen: {match: flops, keys: [hidden_size]}}", "{sparsity: 0.8}",
          "a preset knows its widths");
  refuses(mlp + "widen: {match: flops, keys: []}}", "{sparsity: 0.8}",
          "model.widen.keys: expected at least one key");
  refuses(std::string(kVit) + ", widen: flops}", "[{algorithm: Structured, sparsity: 0.5}]",
          "structured masks units, whose number is not planned for other widths; leave `widen`");
  refuses(mlp + "widen: flops}", "{sparsity: 0.8}",
          "model.widen: the widths of this model are unknown; name keys");
  refuses(mlp + "widen: {match: flops, keys: [out_channels]}}", "{sparsity: 0.8}",
          "no layer or template has a numeric out_channels, so there is nothing to widen");
  refuses(mlp + "widen: {match: flops, key: [out_features]}}", "{sparsity: 0.8}",
          "unknown key 'key'; did you mean 'keys'?");
  refuses(mlp + "init_from: x.h5, widen: {match: flops, keys: [out_features]}}", "{sparsity: 0.8}",
          "the loaded weights have the shapes that are written");
  refuses(mlp + "widen: {match: flops, keys: [out_features]}}",
          "{sparsity: 0.999, param_filter: fc1.weight}", "model.widen: even 64 times wider");
}

}  // namespace
}  // namespace lacuna::widen_test
