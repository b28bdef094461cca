// What calibration collects of a layer's inputs: held against the outputs that the layer gives.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/convolutions/conv1d.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/linear.h"
#include "lacuna/sparsity/calibration/calibration.h"
#include "lacuna/sparsity/one_shot_pruning.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::calibration_test {
namespace {

double squares(const Tensor& values) {
  double sum = 0.0;
  for (const float v : values.to_vector()) sum += static_cast<double>(v) * v;
  return sum;
}

Tensor outputs(Module& model, const Tensor& x) {
  const NoGrad no_grad;
  return model(Variable(x)).value().to(Order::RowMajor).clone();
}

/// The relative error that pruning reports is that of the layer's own outputs.
void expect_error_of_outputs(Module& model, const Tensor& x, OneShotMethod method) {
  const Tensor before = outputs(model, x);
  OneShotPruning algorithm(
      {.common = {.sparsity = 0.5}, .pruning = OneShotOptions::defaults(method)});
  algorithm.calibrate_with([&](Module& m) { m(Variable(x)); });
  model.apply(algorithm);
  algorithm.prune();
  const Tensor after = outputs(model, x);
  Tensor difference = before.clone();
  for (int64_t i = 0; i < before.numel(); ++i) difference.mutable_data()[i] -= after.data()[i];
  ASSERT_EQ(algorithm.pruned().size(), 1u);
  const double error = squares(difference) / squares(before);
  EXPECT_GT(error, 0.001);
  EXPECT_NEAR(*algorithm.pruned()[0].relative_error, error, 1e-4 * error) << to_string(method);
  const ParameterPtr weight = model.parameter("layer.weight");
  EXPECT_EQ(weight->pattern()->nnz(), weight->numel() / 2);
}

struct Case {
  std::string name;
  Conv2d::Options options;
};

class Convolutions : public testing::TestWithParam<Case> {};

TEST_P(Convolutions, AreUnfoldedAsTheyMultiply) {
  for (const OneShotMethod method : {OneShotMethod::Magnitude, OneShotMethod::SparseGpt}) {
    Sequential model;
    model.add<Conv2d>("layer", GetParam().options);
    model.initialize(1);
    expect_error_of_outputs(model, random_tensor({5, 4, 9, 7}, "images"), method);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Convolutions,
    testing::Values(
        Case{"Plain", {.in_channels = 4, .out_channels = 6, .bias = false}},
        Case{"Padding", {.in_channels = 4, .out_channels = 6, .padding = {1, 2}, .bias = false}},
        Case{"Stride",
             {.in_channels = 4,
              .out_channels = 6,
              .stride = {2, 3},
              .padding = {1, 1},
              .bias = false}},
        Case{"Dilation",
             {.in_channels = 4,
              .out_channels = 6,
              .kernel = {3, 2},
              .padding = {2, 0},
              .dilation = {2, 3},
              .bias = false}},
        Case{"Groups",
             {.in_channels = 4, .out_channels = 6, .padding = {1, 1}, .groups = 2, .bias = false}},
        Case{"Depthwise",
             {.in_channels = 4, .out_channels = 8, .kernel = {2, 2}, .groups = 4, .bias = false}}),
    [](const auto& test) { return test.param.name; });

TEST(CalibrationTest, SequencesAreUnfoldedToo) {
  Sequential model;
  model.add<Conv1d>(
      "layer",
      {.in_channels = 4, .out_channels = 6, .kernel = 4, .stride = 2, .padding = 2, .bias = false});
  model.initialize(1);
  expect_error_of_outputs(model, random_tensor({3, 4, 11}, "sequences"), OneShotMethod::Wanda);
}

// What comes out of the transforms of inputs is what the weight is multiplied with.
TEST(CalibrationTest, SeesInputsBehindTheirTransforms) {
  Sequential model;
  Module& layer = model.add<Linear>("layer", {.in_features = 8, .out_features = 6, .bias = false});
  layer.register_input_transform([](const Variable& x) {
    Tensor kept = x.value().clone();
    for (int64_t i = 0; i < kept.numel(); i += 2) kept.mutable_data()[i] = 0.0f;
    return Variable(kept);
  });
  model.initialize(1);
  expect_error_of_outputs(model, random_tensor({20, 8}, "x"), OneShotMethod::Magnitude);
}

class Twice final : public Module {
 public:
  Twice() {
    register_module("fc",
                    std::make_unique<Linear>(Linear::Options{.in_features = 4, .out_features = 4}));
  }
  std::string_view type() const override { return "twice"; }

 protected:
  Variable forward(const Variable& x) override {
    Module& fc = *children()[0].second;
    return fc(fc(x));
  }
};

TEST(CalibrationTest, CountsEveryUseOfALayerInAForwardPass) {
  Twice model;
  model.initialize(2);
  const Tensor x = random_tensor({6, 4}, "x");
  const CalibrationRun run = [&](Module& m) { m(Variable(x)); };
  const auto layers = layers_in_order(model, run, model.parameters());
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].uses, 2);
  EXPECT_EQ(collect_inputs(model, run, layers[0]).front().rows(), 12);
}

/// Two layers that are given one tensor, and a third that is given another.
class Fork final : public Module {
 public:
  Fork() {
    for (const char* name : {"a", "b", "c"}) {
      register_module(
          name, std::make_unique<Linear>(Linear::Options{.in_features = 4, .out_features = 4}));
    }
  }
  std::string_view type() const override { return "fork"; }
  int passes = 0, whole_passes = 0;

 protected:
  Variable forward(const Variable& x) override {
    ++passes;
    const auto layers = children();
    const Variable a = (*layers[0].second)(x);
    (*layers[1].second)(x);
    const Variable c = (*layers[2].second)(a);
    ++whole_passes;
    return c;
  }
};

TEST(CalibrationTest, LayersOfOneInputShareItAndPassesEndEarly) {
  Fork model;
  model.initialize(2);
  const Tensor x = random_tensor({6, 4}, "x");
  const CalibrationRun run = [&](Module& m) {
    for (int i = 0; i < 3; ++i) m(Variable(x));
  };
  const auto layers = layers_in_order(model, run, model.parameters());
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(model.passes, 1);
  EXPECT_FALSE(layers[0].shares_input);
  EXPECT_TRUE(layers[1].shares_input);
  EXPECT_FALSE(layers[2].shares_input);
  const int before = model.whole_passes;
  EXPECT_EQ(collect_inputs(model, run, layers[0]).front().rows(), 18);
  EXPECT_EQ(model.whole_passes, before);
}

TEST(CalibrationTest, TokensThatOnlyFillABatchUpDoNotCount) {
  Sequential model;
  model.add<Linear>("fc", {.in_features = 4, .out_features = 2});
  model.initialize(1);
  const Tensor x = random_tensor({2, 3, 4}, "tokens");
  NamedTensors named;
  named.emplace("attention_mask", IndexTensor(Shape{2, 3}, {1, 1, 0, 1, 0, 0}));
  const CalibrationRun run = [&](Module& m) {
    const NamedInputs names(named);
    m(Variable(x));
  };
  const auto layers = layers_in_order(model, run, model.parameters());
  const std::vector<InputGram> grams = collect_inputs(model, run, layers.front());
  InputGram expected(4);
  for (const size_t token : {0u, 1u, 3u}) expected.add(x.storage().subspan(token * 4, 4));
  ASSERT_EQ(grams.front().rows(), 3);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_FLOAT_EQ(static_cast<float>(grams.front().matrix()[i]),
                    static_cast<float>(expected.matrix()[i]));
  }
}

TEST(CalibrationTest, OptionsAreReadAndRefused) {
  const auto read = [](const Config& c) { return CalibrationOptions::from_config(c); };
  EXPECT_EQ(read(Config(64)).examples, 64);
  EXPECT_EQ(read(Config::map({{"batch_size", 16}})).batch_size, 16);
  EXPECT_FALSE(read(Config()).examples.has_value());
  expect_throws<ConfigError>([&] { read(Config(0)); }, "at least 1");
  expect_throws<ConfigError>([&] { read(Config::map({{"examples", 0}})); }, "examples");
  expect_throws<ConfigError>([&] { read(Config("many")); }, "a number of examples");
}

}  // namespace
}  // namespace lacuna::calibration_test
