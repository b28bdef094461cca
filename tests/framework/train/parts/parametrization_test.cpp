// `parametrization: sparse_mup`: what each parameter is, its factors, and what they are for.
#include "lacuna/framework/train/parts/parametrization.hpp"
#include "framework/train/training_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "state_differences.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::parametrization_test {
namespace {

using testing::IsEmpty;

constexpr const char* kMup = "parametrization: {type: sparse_mup, base_width: 16}\n";

std::unique_ptr<Experiment> build(const std::string& model, const std::string& more,
                                  const std::string& data = "glyphs") {
  const std::string text =
      "data: {type: " + data + ", train_size: 40, test_size: 10}\nmodel: " + model +
      "\ntrain: {batch_size: 20, threads: 1, steps: 8}\n" + more +
      (more.find("optimizer:") == std::string::npos ? "optimizer: {type: adam, lr: 0.01}\n" : "");
  return build_experiment(parse_yaml(text, "e.yaml"));
}

std::string mlp(int64_t width) {
  const std::string n = std::to_string(width);
  return "[flatten, {type: linear, name: fc1, out_features: " + n +
         "}, relu, {type: linear, name: fc2, out_features: " + n +
         "}, relu, {type: linear, name: fc3, out_features: 10}]";
}

std::map<std::string, Parametrization::Row> rows_of(const Experiment& e) {
  std::map<std::string, Parametrization::Row> rows;
  for (const Parametrization::Row& row : e.parametrization->rows(*e.optimizer)) {
    rows[row.sized->parameter->name()] = row;
  }
  return rows;
}

std::string role(const Experiment& e, const std::string& name) {
  return std::string(role_in_words(rows_of(e).at(name).sized->role));
}

double deviation(const Parameter& parameter) {
  double squares = 0.0;
  for (const float value : parameter.to_dense().to_vector()) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(squares / static_cast<double>(parameter.pattern()->nnz()));
}

ParameterScale scale(UpdateRule rule, ParameterRole role, double density,
                     const ParametrizationOptions& options = {}) {
  SizedParameter p{.parameter = nullptr, .role = role, .in = 4.0, .out = 2.0};
  return sparse_mup(rule, p, density, options);
}

TEST(SparseMup, HasTheRulesOfItsSources) {
  const auto hidden = scale(UpdateRule::DecoupledAdam, ParameterRole::Hidden, 0.25);
  EXPECT_DOUBLE_EQ(hidden.first, 1.0);                // 1/√(4 · 0.25)
  EXPECT_DOUBLE_EQ(hidden.update.lr, 1.0);            // 1/(4 · 0.25)
  EXPECT_DOUBLE_EQ(hidden.update.eps, 0.25);          // as gradients: 1/4
  EXPECT_DOUBLE_EQ(hidden.update.weight_decay, 4.0);  // lr · decay is kept at any width
  const auto sparse = scale(UpdateRule::DecoupledAdam, ParameterRole::Hidden, 0.04);
  EXPECT_DOUBLE_EQ(sparse.first, 2.5);
  EXPECT_DOUBLE_EQ(sparse.update.lr, 6.25);
  EXPECT_DOUBLE_EQ(sparse.update.weight_decay, 4.0);
  ParametrizationOptions all;
  all.weight_decay = ParametrizationOptions::Decay::All;
  EXPECT_DOUBLE_EQ(
      scale(UpdateRule::DecoupledAdam, ParameterRole::Hidden, 0.04, all).update.weight_decay, 0.16);
  const auto l2 = scale(UpdateRule::Adam, ParameterRole::Hidden, 0.04, all);
  EXPECT_DOUBLE_EQ(l2.update.weight_decay, 0.1);  // gradients 1/4, values 2.5
  const auto input = scale(UpdateRule::Adam, ParameterRole::Input, 0.25);
  EXPECT_DOUBLE_EQ(input.first, 2.0);
  EXPECT_DOUBLE_EQ(input.update.lr, 4.0);
  EXPECT_DOUBLE_EQ(input.update.eps, 1.0);
  const auto output = scale(UpdateRule::Adam, ParameterRole::Output, 1.0);
  EXPECT_DOUBLE_EQ(output.first, 0.25);
  EXPECT_DOUBLE_EQ(output.update.lr, 0.25);
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Adam, ParameterRole::LastNorm, 1.0).first, 0.25);
  EXPECT_EQ(scale(UpdateRule::Adam, ParameterRole::Vector, 1.0).update, UpdateFactors{});
  EXPECT_EQ(scale(UpdateRule::Adam, ParameterRole::Table, 1.0).update, UpdateFactors{});
}

TEST(SparseMup, GivesSgdTheSizeOfGradients) {
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Gradient, ParameterRole::Hidden, 0.25).update.lr, 2.0);
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Gradient, ParameterRole::Input, 0.25).update.lr, 8.0);
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Gradient, ParameterRole::Output, 0.5).update.lr, 0.5);
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Gradient, ParameterRole::Vector, 1.0).update.lr, 2.0);
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Gradient, ParameterRole::LastNorm, 1.0).update.lr, 0.125);
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Gradient, ParameterRole::Hidden, 0.25).update.weight_decay,
                   2.0);
  SizedParameter normalized{.parameter = nullptr, .role = ParameterRole::Hidden, .in = 4.0};
  normalized.is_normalized = true;  // only the direction of its rows has an effect
  EXPECT_DOUBLE_EQ(sparse_mup(UpdateRule::Adam, normalized, 0.25, {}).update.lr, 0.5);
  EXPECT_DOUBLE_EQ(sparse_mup(UpdateRule::Adam, normalized, 0.25, {}).first, 1.0);
  EXPECT_DOUBLE_EQ(sparse_mup(UpdateRule::Gradient, normalized, 0.25, {}).update.lr, 0.5);
}

TEST(SparseMup, LeavesOutWhatIsSwitchedOff) {
  ParametrizationOptions options;
  options.output_multiplier = false;
  options.weight_decay = ParametrizationOptions::Decay::None;
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Adam, ParameterRole::Output, 1.0, options).first, 1.0);
  EXPECT_DOUBLE_EQ(scale(UpdateRule::Adam, ParameterRole::LastNorm, 1.0, options).update.lr, 1.0);
  const auto hidden = scale(UpdateRule::DecoupledAdam, ParameterRole::Hidden, 0.04, options);
  EXPECT_DOUBLE_EQ(hidden.update.weight_decay, 1.0);
  EXPECT_DOUBLE_EQ(hidden.update.lr, 6.25);
}

TEST(Parametrization, ChangesNothingAtTheBase) {
  for (const std::string optimizer : {"{type: adamw, lr: 0.01, weight_decay: 0.1}",
                                      "{type: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.01}"}) {
    const auto plain = build(mlp(16), "optimizer: " + optimizer + "\n");
    const auto mup = build(mlp(16), "optimizer: " + optimizer + "\n" + kMup);
    for (const auto& [name, row] : rows_of(*mup)) {
      EXPECT_EQ(row.first, 1.0) << name;
      EXPECT_EQ(row.update, UpdateFactors{}) << name;
    }
    for (int i = 0; i < 3; ++i) {
      take_steps(*plain, 1);
      take_steps(*mup, 1);
    }
    EXPECT_THAT(differences(plain->model->state_dict(), mup->model->state_dict()), IsEmpty());
  }
}

TEST(Parametrization, KnowsLayersThatReadTheDataAndGiveTheClasses) {
  const auto e = build(mlp(64), std::string(kMup) + "sparsity: {sparsity: 0.75}\n");
  EXPECT_EQ(role(*e, "fc1.weight"), "input");
  EXPECT_EQ(role(*e, "fc2.weight"), "hidden");
  EXPECT_EQ(role(*e, "fc3.weight"), "output");
  EXPECT_EQ(role(*e, "fc3.bias"), "vector");
  const auto rows = rows_of(*e);
  EXPECT_DOUBLE_EQ(rows.at("fc1.weight").density, 0.25);
  EXPECT_DOUBLE_EQ(rows.at("fc1.weight").update.lr, 4.0);
  EXPECT_DOUBLE_EQ(rows.at("fc2.weight").sized->in, 4.0);
  EXPECT_DOUBLE_EQ(rows.at("fc2.weight").update.lr, 1.0);
  EXPECT_DOUBLE_EQ(rows.at("fc2.weight").first, 2.0);  // the layer itself divides by √inputs
  EXPECT_DOUBLE_EQ(rows.at("fc3.weight").density, 1.0);
  EXPECT_DOUBLE_EQ(rows.at("fc3.weight").first, 0.5);
  EXPECT_DOUBLE_EQ(rows.at("fc3.weight").update.lr, 0.25);
  // Biases are drawn as at the base: within ± 1/√16.
  EXPECT_NEAR(deviation(*e->model->parameter("fc2.bias")), 0.25 / std::sqrt(3.0), 0.03);
  EXPECT_NEAR(deviation(*e->model->parameter("fc2.weight")), 2.0 / std::sqrt(3.0 * 64.0), 0.005);
}

TEST(Parametrization, GoesByDeviationsThatAreWritten) {
  const std::string draw = ", init: {type: normal, std: 0.1}";
  const auto e = build("[flatten, {type: linear, name: fc1, out_features: 64" + draw +
                           "}, relu, {type: linear, name: fc2, out_features: 64" + draw +
                           "}, relu, {type: linear, name: fc3, out_features: 64, init_fan_in: "
                           "nonzeros}, relu, {type: linear, name: fc4, out_features: 10}]",
                       std::string(kMup) + "sparsity: {sparsity: 0.75}\n");
  const auto rows = rows_of(*e);
  EXPECT_DOUBLE_EQ(rows.at("fc1.weight").first, 2.0);
  EXPECT_DOUBLE_EQ(rows.at("fc2.weight").first, 1.0);  // 1/√(4 · 0.25)
  EXPECT_DOUBLE_EQ(rows.at("fc3.weight").first, 1.0);  // which counts its nonzeros already
  EXPECT_NEAR(deviation(*e->model->parameter("fc3.weight")), 2.0 / std::sqrt(3.0 * 64.0), 0.005);
}

TEST(Parametrization, CountsChannelsOfConvolutions) {
  const auto e = build(
      "[{type: conv2d, name: c1, out_channels: 32, kernel: 3, bias: false}, {type: batch_norm, "
      "name: "
      "bn}, relu, {type: max_pool, kernel: 2}, {type: conv2d, name: deep, out_channels: 32, "
      "kernel: "
      "3, groups: 32}, {type: conv2d, name: c2, out_channels: 64, kernel: 3}, relu, flatten, "
      "{type: "
      "linear, name: fc, out_features: 10}]",
      kMup, "colour_glyphs");
  const auto rows = rows_of(*e);
  EXPECT_EQ(role(*e, "c1.weight"), "input");
  EXPECT_EQ(role(*e, "bn.weight"), "vector");
  EXPECT_TRUE(rows.at("c1.weight").sized->is_normalized);
  EXPECT_FALSE(rows.at("c2.weight").sized->is_normalized);
  EXPECT_DOUBLE_EQ(rows.at("deep.weight").sized->in, 1.0);  // one channel, however many there are
  EXPECT_DOUBLE_EQ(rows.at("c2.weight").sized->in, 2.0);
  EXPECT_DOUBLE_EQ(rows.at("fc.weight").sized->in, 4.0);  // channels, and not pixels
  EXPECT_EQ(role(*e, "fc.weight"), "output");
}

// Images of 32 × 32, 16 × 16, 8 × 8 pixels, and rows of 28: as many as there are channels.
TEST(Parametrization, TellsChannelsFromAsManyPixels) {
  const auto e = build(
      "[{type: conv2d, name: c1, out_channels: 32, kernel: 3, padding: 1}, relu, {type: max_pool, "
      "kernel: 2}, {type: conv2d, name: c2, out_channels: 16, kernel: 3, padding: 1}, {type: "
      "avg_pool, kernel: 2}, {type: conv2d, name: c3, out_channels: 8, kernel: 1}, {type: "
      "subsample_pad, channels: 24, stride: 2}, flatten, {type: linear, name: fc, out_features: "
      "10}]",
      kMup, "colour_glyphs");
  const auto rows = rows_of(*e);
  EXPECT_DOUBLE_EQ(rows.at("c2.weight").sized->in, 2.0);
  EXPECT_DOUBLE_EQ(rows.at("c3.weight").sized->in, 1.0);
  EXPECT_DOUBLE_EQ(rows.at("fc.weight").sized->in, 1.5);
  const auto lines = build(
      "[{type: conv1d, name: c1, out_channels: 28, kernel: 3, padding: 1}, {type: max_pool, "
      "kernel: 2}, {type: conv1d, name: c2, out_channels: 14, kernel: 1}, global_average_pool, "
      "{type: linear, name: fc, out_features: 10}]",
      "parametrization: {type: sparse_mup, base_width: 7}\n");
  EXPECT_DOUBLE_EQ(rows_of(*lines).at("c2.weight").sized->in, 4.0);
  EXPECT_DOUBLE_EQ(rows_of(*lines).at("fc.weight").sized->in, 2.0);
}

TEST(Parametrization, FindsOutputsInBranches) {
  const auto e = build(
      "[flatten, {type: linear, name: in, out_features: 32}, {type: residual, layers: [{type: "
      "linear, name: a, out_features: 32}, relu]}, {type: parallel, layers: [{type: linear, name: "
      "x, "
      "out_features: 4}, {type: linear, name: y, out_features: 6}]}]",
      kMup);
  EXPECT_EQ(role(*e, "in.weight"), "input");
  EXPECT_EQ(role(*e, "a.weight"), "hidden");
  EXPECT_EQ(role(*e, "x.weight"), "output");
  EXPECT_EQ(role(*e, "y.weight"), "output");
}

TEST(Parametrization, LeavesRatesOfGroupsAsTheyAre) {
  const auto e = build(mlp(64), std::string(kMup) +
                                    "optimizer: {type: adamw, lr: 0.01, weight_decay: 0.1, groups: "
                                    "[{params: fc2.weight, lr: 0.002}, {params: fc3.weight, "
                                    "weight_decay: 0.0}]}\n");
  const auto rows = rows_of(*e);
  EXPECT_DOUBLE_EQ(rows.at("fc2.weight").update.lr, 1.0);
  EXPECT_DOUBLE_EQ(rows.at("fc2.weight").update.weight_decay, 1.0);
  EXPECT_DOUBLE_EQ(rows.at("fc3.weight").update.lr, 0.25);
  EXPECT_DOUBLE_EQ(rows.at("fc3.weight").update.weight_decay, 1.0);
}

TEST(Parametrization, ScalesDenseMastersToo) {
  const std::string sparsity = "sparsity: {algorithm: ste, sparsity: 0.75, update: {freq: 2}}\n";
  const auto plain = build(mlp(16), sparsity), mup = build(mlp(16), sparsity + kMup);
  const auto master = [](const Experiment& e) {
    return e.model->parameter("fc2.weight")->slots().at("shadow").values.to_vector();
  };
  const std::vector<float> before = master(*plain), after = master(*mup);
  for (size_t i = 0; i < before.size(); ++i) ASSERT_FLOAT_EQ(after[i], 2.0f * before[i]);
  take_steps(*mup, 1);
}

TEST(Parametrization, FollowsTheFirstDensityOrThePresentOne) {
  const std::string gmp =
      "sparsity: {algorithm: gmp, sparsity: 0.75, param_filter: fc2.weight, update: {steps: "
      "[2]}}\n";
  const auto factor_after = [&](const std::string& density) {
    const auto e = build(
        mlp(16), gmp + "parametrization: {type: sparse_mup, base_width: 16, " + density + "}\n");
    const ParameterPtr weight = e->model->parameter("fc2.weight");
    EXPECT_DOUBLE_EQ(e->optimizer->factors(*weight).lr, 1.0);
    take_steps(*e, 4);
    EXPECT_EQ(weight->pattern()->nnz(), 64);
    return e->optimizer->factors(*weight).lr;
  };
  EXPECT_DOUBLE_EQ(factor_after("density: first"), 1.0);
  EXPECT_DOUBLE_EQ(factor_after("density: present"), 4.0);
  const auto snip = build(
      mlp(16), std::string(kMup) + "sparsity: {algorithm: snip, scope: layer, sparsity: 0.75}\n");
  EXPECT_DOUBLE_EQ(rows_of(*snip).at("fc2.weight").update.lr, 4.0);  // pruned before any update
}

TEST(Parametrization, CountsDensityFromTheBases) {
  const auto e = build(mlp(16),
                       "parametrization: {type: sparse_mup, base_width: 16, base_density: 0.5}\n"
                       "sparsity: {sparsity: 0.75}\n");
  EXPECT_DOUBLE_EQ(rows_of(*e).at("fc2.weight").density, 0.5);
  EXPECT_DOUBLE_EQ(rows_of(*e).at("fc3.weight").density, 1.0);  // dense here, and there
}

// One step's change of the outputs: what rates that fit any size keep.
TEST(Parametrization, KeepsWhatAStepChangesAtAnyWidthAndDensity) {
  const auto change = [](int64_t width, const std::string& optimizer, const std::string& more) {
    const auto e = build(mlp(width), "optimizer: " + optimizer + "\n" + more);
    const auto outputs = [&] {
      const NoGrad no_gradient;
      e->model->eval();
      const Tensor y =
          (*e->model)(Variable(Tensor::full(Shape{1, 1, 28, 28}, 0.5f))).value().clone();
      e->model->train();
      return y.to_vector();
    };
    const std::vector<float> before = outputs();
    take_steps(*e, 1);
    const std::vector<float> after = outputs();
    double squares = 0.0;
    for (size_t i = 0; i < before.size(); ++i) {
      squares += std::pow(static_cast<double>(after[i] - before[i]), 2);
    }
    return std::sqrt(squares);
  };
  for (const std::string optimizer : {"{type: adam, lr: 0.002}", "{type: sgd, lr: 0.05}"}) {
    const double base = change(32, optimizer, "");
    const std::string mup = "parametrization: {type: sparse_mup, base_width: 32}\n";
    for (const int64_t width : {32, 256}) {
      for (const std::string sparsity : {"", "sparsity: {sparsity: 0.9}\n"}) {
        const double found = change(width, optimizer, mup + sparsity) / base;
        EXPECT_GT(found, 0.4) << optimizer << width << sparsity;
        EXPECT_LT(found, 2.5) << optimizer << width << sparsity;
      }
    }
  }
  EXPECT_GT(change(256, "{type: adam, lr: 0.002}", "") / change(32, "{type: adam, lr: 0.002}", ""),
            2.0);
}

TEST(Parametrization, IsKeptInTheState) {
  const std::string more =
      std::string(kMup) + "sparsity: {algorithm: gmp, sparsity: 0.75, update: {steps: [2]}}\n";
  const auto whole = build(mlp(32), more), begun = build(mlp(32), more);
  take_steps(*whole, 6);
  take_steps(*begun, 4);
  const StateDict state = begun->state_dict();
  EXPECT_EQ(state.count("parametrization/fc2.weight/nnz"), 32 * 32);
  const auto resumed = build_experiment(begun->config, Start::FromCheckpoint);
  resumed->model->load_state_dict(state.below("model"));
  resumed->sparsity->load_state_dict(state.below("algorithm"));
  resumed->optimizer->load_state_dict(state.below("optimizer"));
  resumed->parametrization->load_state_dict(state.below("parametrization"));
  EXPECT_EQ(resumed->optimizer->factors(*resumed->model->parameter("fc2.weight")),
            begun->optimizer->factors(*begun->model->parameter("fc2.weight")));
  expect_throws<CheckpointError>([&] { resumed->parametrization->load_state_dict({}); },
                                 "fc1.weight/nnz");
}

TEST(Parametrization, IsNotThereUnlessItIsWritten) {
  const auto e = build(mlp(64), "sparsity: {sparsity: 0.75}\n");
  EXPECT_EQ(e->parametrization, nullptr);
  EXPECT_FALSE(e->state_dict().contains("parametrization/fc1.weight/nnz"));
  EXPECT_EQ(e->optimizer->factors(*e->model->parameter("fc2.weight")), UpdateFactors{});
}

TEST(Parametrization, LeavesLoadedWeightsAtTheirOwnScale) {
  const TemporaryFolder folder;
  const auto trained = build(mlp(64), "");
  save_model(folder / "model.h5", *trained->model);
  const auto e = build("{init_from: " + (folder / "model.h5") + ", layers: " + mlp(64) + "}", kMup);
  EXPECT_THAT(differences(trained->model->state_dict(), e->model->state_dict()), IsEmpty());
  EXPECT_DOUBLE_EQ(rows_of(*e).at("fc2.weight").update.lr, 0.25);
  EXPECT_DOUBLE_EQ(rows_of(*e).at("fc3.weight").update.lr, 1.0);  // its outputs stay as they are
}

TEST(Parametrization, SaysWhatIsWrongWithItAndWhere) {
  const auto refuses = [](const std::string& section, const std::string& words) {
    expect_throws<ConfigError>([&] { build(mlp(16), "parametrization: " + section + "\n"); },
                               words);
  };
  refuses("sparse_mup", "e.yaml:4:18: parametrization: expected a map with `type`");
  refuses("{base_width: 64}", "parametrization.type");
  refuses(
      "{type: mup}",
      "e.yaml:4:25: parametrization.type: unknown parametrization 'mup'; valid names: sparse_mup");
  refuses("{type: sparse_mup, base_width: 0}",
          "e.yaml:4:49: parametrization.base_width: expected a number above 0, found '0'");
  refuses("{type: sparse_mup, base_width: -64}", "base_width: expected a number above 0");
  refuses("{type: sparse_mup, base_density: 0}", "base_density: expected a fraction in (0, 1]");
  refuses("{type: sparse_mup, base_density: 1.5}",
          "e.yaml:4:51: parametrization.base_density: expected a fraction in (0, 1], found '1.5'");
  refuses("{type: sparse_mup, weight_decay: half}", "expected none, width or all, found 'half'");
  refuses("{type: sparse_mup, base_width: 1e30}", "base_width: expected a number of at most 2³¹");
  refuses("{type: sparse_mup, width: 0}", "parametrization.width: expected a number above 0");
  refuses("{type: sparse_mup, density: last}", "expected first or present, found 'last'");
  refuses("{type: sparse_mup, base_with: 64}",
          "unknown key 'base_with'; did you mean 'base_width'?");
}

}  // namespace
}  // namespace lacuna::parametrization_test
