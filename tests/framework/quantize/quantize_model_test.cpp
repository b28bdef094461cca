#include "lacuna/framework/quantize/quantize_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/convolutions/conv1d.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/flatten.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/tied_linear.h"
#include "lacuna/layers/tiled_linear.h"
#include "random_values.h"
#include "state_differences.h"
#include "throws.h"

namespace lacuna::quantize_model_test {
namespace {

QuantizeOptions options_of(const std::string& yaml) {
  return QuantizeOptions::from_config(parse_yaml("quantize: " + yaml, "q.yaml").at("quantize"));
}

class QuantizeModel : public testing::Test {
 protected:
  QuantizeModel() {
    model_.add<Linear>("fc1", {.in_features = 10, .out_features = 24});
    model_.add<ReLU>("relu1");
    model_.add<Linear>("fc2", {.in_features = 24, .out_features = 18});
    model_.add<GELU>("gelu");
    model_.add<Linear>("fc3", {.in_features = 18, .out_features = 12, .bias = false});
    model_.add<ReLU>("relu3");
    model_.add<Linear>("fc4", {.in_features = 12, .out_features = 4});
    model_.initialize(5);
    sparsify("fc2.weight", csr_layout());
    sparsify("fc3.weight", masked_layout());
    model_.eval();
  }
  void sparsify(const std::string& name, const Layout& layout) {
    const ParameterPtr weight = model_.parameter(name);
    BitMask mask = BitMask::zeros(weight->numel());
    for (int64_t i = 0; i < weight->numel(); i += 1 + i % 3) mask.set(i);
    weight->values();
    weight->set_pattern(Pattern::make(layout, weight->shape(), mask));
    weight->prune();
  }
  CalibrationRun run() const {
    return [inputs = inputs_](Module& model) {
      for (int i = 0; i < 2; ++i) model(Variable(inputs));
    };
  }
  QuantizedModel quantize(const std::string& yaml) {
    const QuantizeOptions options = options_of(yaml);
    return quantize_model(model_, int8_candidates(model_, options), options,
                          options.needs_examples() ? run() : CalibrationRun());
  }
  std::vector<float> outputs() {
    const NoGrad no_grad;
    return model_(Variable(inputs_)).value().to_vector();
  }
  /// Outputs in int8, less those before: the root of the mean square over that of these.
  double change(const std::vector<float>& before) {
    const std::vector<float> after = outputs();
    double lost = 0.0, sum = 0.0;
    for (size_t i = 0; i < after.size(); ++i) {
      lost += std::pow(after[i] - before[i], 2);
      sum += std::pow(before[i], 2);
    }
    return std::sqrt(lost / sum);
  }

  Tensor inputs_ = random_tensor(Shape{80, 10}, "inputs");
  Sequential model_;
};

TEST_F(QuantizeModel, LeavesTheFirstAndLastLayerUnlessAsked) {
  const auto names = [&](const std::string& yaml) {
    std::vector<std::string> chosen;
    for (const Int8Candidate& c : int8_candidates(model_, options_of(yaml))) {
      if (c.reason.empty()) chosen.push_back(c.weight->name());
    }
    return chosen;
  };
  EXPECT_THAT(names("{}"), testing::ElementsAre("fc2.weight", "fc3.weight"));
  EXPECT_THAT(names("{param_filter: fc*.weight}"), testing::SizeIs(4));
  EXPECT_THAT(names("{param_filter: [fc1.weight]}"), testing::ElementsAre("fc1.weight"));
}

TEST_F(QuantizeModel, ChangesOutputsALittle) {
  const std::vector<float> before = outputs();
  for (const char* yaml :
       {"{param_filter: '*.weight'}", "{param_filter: '*.weight', algorithm: nearest}",
        "{param_filter: '*.weight', algorithm: nearest, activations: {when: dynamic}}",
        "{activations: {observer: min_max}, weights: {clip: max}}"}) {
    const StateDict saved = model_.state_dict();
    const StateDict state = state_of(quantize(yaml).layers);
    model_.load_state_dict(saved);
    run_in_int8(model_, state);
    EXPECT_LT(change(before), 0.03) << yaml;
    EXPECT_GT(change(before), 0.0) << yaml;
    for (Module* module : model_.modules()) {
      if (auto* layer = dynamic_cast<Linear*>(module)) layer->run_in_int8(nullptr);
    }
    EXPECT_EQ(outputs(), before);
  }
}

TEST_F(QuantizeModel, KeepsMasksAndSavesWhatItFound) {
  const StateDict saved = model_.state_dict();
  const int64_t nnz = model_.parameter("fc2.weight")->pattern()->nnz();
  const QuantizedModel quantized = quantize("{}");
  ASSERT_EQ(quantized.layers.size(), 2u);
  EXPECT_EQ(quantized.layers[0].weight, "fc2.weight");
  EXPECT_EQ(static_cast<int64_t>(quantized.layers[0].values.size()), nnz);
  EXPECT_EQ(quantized.layers[0].scales.size(), 18u);
  EXPECT_EQ(quantized.layers[0].input->zero, 0);  // behind a ReLU
  EXPECT_GT(quantized.layers[1].input->zero, 0);  // a GELU gives negative numbers
  const std::vector<QuantizedLayer> read = quantized_layers(state_of(quantized.layers));
  ASSERT_EQ(read.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].values, quantized.layers[i].values);
    EXPECT_EQ(read[i].scales, quantized.layers[i].scales);
    EXPECT_EQ(read[i].input, quantized.layers[i].input);
  }
}

TEST_F(QuantizeModel, IsTheSameOnAnyNumberOfThreads) {
  const StateDict saved = model_.state_dict();
  const int before = num_threads();
  std::vector<std::vector<int8_t>> values;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    model_.load_state_dict(saved);
    values.push_back(quantize("{}").layers[0].values);
  }
  set_num_threads(before);
  EXPECT_EQ(values[0], values[1]);
}

TEST_F(QuantizeModel, ByGptqLosesLessThanByRounding) {
  const StateDict saved = model_.state_dict();
  const double gptq = quantize("{algorithm: gptq}").layers[0].relative_error;
  model_.load_state_dict(saved);
  const double nearest = quantize("{algorithm: nearest}").layers[0].relative_error;
  EXPECT_LT(gptq, nearest);
}

TEST(Int8Candidates, TilesOfALayerStayTogether) {
  Sequential model;
  model.add<Linear>("a", {.in_features = 4, .out_features = 4});
  model.add<Linear>("b", {.in_features = 4, .out_features = 4});
  model.add<TiledLinear>("out", {.linear = {.in_features = 4, .out_features = 20}, .tile = 8});
  std::vector<std::string> reasons;
  for (const Int8Candidate& c : int8_candidates(model, options_of("{}"))) {
    reasons.push_back(c.weight->name() + ": " + c.reason);
  }
  EXPECT_THAT(reasons,
              testing::ElementsAre("a.weight: the first layer",
                                   "b.weight: ", "out.0.weight: the last layer",
                                   "out.1.weight: the last layer", "out.2.weight: the last layer"));
}

TEST(Int8Candidates, SharedWeightsAreNone) {
  Sequential model;
  model.add<Linear>("a", {.in_features = 4, .out_features = 4});
  const ParameterPtr shared =
      model.add<Linear>("b", {.in_features = 4, .out_features = 4}).weight();
  model.add<TiedLinear>("c", {.weight = shared});
  model.add<Linear>("d", {.in_features = 4, .out_features = 4});
  model.add<Linear>("e", {.in_features = 4, .out_features = 4});
  std::vector<std::string> reasons;
  for (const Int8Candidate& c : int8_candidates(model, options_of("{}"))) {
    reasons.push_back(c.weight->name() + ": " + c.reason);
  }
  EXPECT_THAT(reasons,
              testing::ElementsAre("a.weight: the first layer", "b.weight: its weight is shared",
                                   "d.weight: ", "e.weight: the last layer"));
  expect_throws<ConfigError>(
      [&] { int8_candidates(model, options_of("{param_filter: b.weight}")); },
      "'b.weight' cannot be quantized: its weight is shared");
}

TEST_F(QuantizeModel, RefusesInputsWithoutARange) {
  std::fill_n(inputs_.mutable_data(), 800, 0.0f);
  expect_throws<DataError>([&] { quantize("{param_filter: fc1.weight, algorithm: nearest}"); },
                           "the inputs of 'fc1.weight' are all 0 in the calibration examples");
  inputs_.mutable_data()[3] = std::numeric_limits<float>::quiet_NaN();
  expect_throws<DataError>([&] { quantize("{param_filter: fc1.weight, algorithm: nearest}"); },
                           "the inputs of 'fc1.weight' are NaN or infinite");
}

// Each example has its own range; only gptq looks at calibration examples.
TEST_F(QuantizeModel, DynamicActivationsNeedNoRange) {
  const std::string keys = "{param_filter: fc1.weight, activations: {when: dynamic}}";
  std::fill_n(inputs_.mutable_data(), inputs_.numel(), 0.0f);
  EXPECT_EQ(quantize(keys).layers.size(), 1u);
  inputs_.mutable_data()[3] = std::numeric_limits<float>::quiet_NaN();
  expect_throws<DataError>([&] { quantize(keys); }, "fc1.weight");
}

TEST_F(QuantizeModel, RefusesFiltersThatChooseNothing) {
  expect_throws<ConfigError>([&] { quantize("{param_filter: fc9.weight}"); },
                             "param_filter 'fc9.weight' matches no weight that a layer multiplies "
                             "with; there are fc1.weight");
  Sequential two;
  two.add<Linear>("a", {.in_features = 4, .out_features = 4});
  two.add<Linear>("b", {.in_features = 4, .out_features = 4});
  expect_throws<ConfigError>([&] { int8_candidates(two, options_of("{}")); },
                             "there is nothing to quantize");
  Sequential convolution;
  convolution.add<Conv2d>("conv", {.in_channels = 1, .out_channels = 2, .kernel = {3, 3}});
  expect_throws<ConfigError>(
      [&] { int8_candidates(convolution, options_of("{param_filter: conv.weight}")); },
      "'conv.weight' cannot be quantized: its 1 input channels are not a multiple of 4");
  Sequential sequences;
  sequences.add<Conv1d>("conv", {.in_channels = 4, .out_channels = 4, .kernel = 3});
  expect_throws<ConfigError>(
      [&] { int8_candidates(sequences, options_of("{param_filter: conv.weight}")); },
      "'conv.weight' cannot be quantized: only linear layers and convolutions of images can run in "
      "int8");
}

TEST(QuantizeOptions, RefusesWhatIsNotThere) {
  const auto refuses = [](const std::string& yaml, const std::string& words) {
    expect_throws<ConfigError>([&] { options_of(yaml); }, words);
  };
  refuses("[1]", "expected a map");
  refuses("{algorithm: awq}", "quantize.algorithm: expected gptq or nearest or qat, found 'awq'");
  refuses("{weights: {bits: 4}}", "quantize.weights.bits: expected 8");
  refuses("{weights: {per: tensor}}", "expected channel");
  refuses("{activations: {when: never}}", "expected static or dynamic or none");
  refuses("{activations: {percentile: 20}}", "quantize.activations.percentile");
  refuses("{calibration: 3}", "3 examples are too few to calibrate on");
  refuses("{algorithm: nearest, activations: {when: dynamic}, calibration: 64}",
          "learns nothing from examples");
  refuses("{activations: {when: dynamic, observer: min_max}}", "unknown key");
  refuses("{smoothed: 0.5}", "unknown key 'smoothed'");
}

// As early builds of 0.2 wrote them.
TEST_F(QuantizeModel, ReadsValuesThatAreStoredWithoutASign) {
  const StateDict state = state_of(quantize("{}").layers);
  const auto& values = state.get<SignedBytes>("fc2.weight/values");
  ASSERT_LT(std::ranges::min(values.values), 0);
  StateDict earlier = state;
  earlier.set(
      "fc2.weight/values",
      ByteArray{.shape = values.shape, .values = {values.values.begin(), values.values.end()}});
  EXPECT_EQ(quantized_layers(earlier).front().values, values.values);
  EXPECT_EQ(differences(state_of(quantized_layers(earlier)), state), std::vector<std::string>());
}

TEST_F(QuantizeModel, RefusesStatesThatDoNotFit) {
  const StateDict good = state_of(quantize("{}").layers);
  const auto refuses = [&](const std::string& name, const StateDict::Value& value,
                           const std::string& words) {
    StateDict bad = good;
    bad.set(name, value);
    expect_throws<CheckpointError>([&] { run_in_int8(model_, bad); }, words);
  };
  refuses("fc2.weight/values", ByteArray{.shape = Shape{2}, .values = {1, 2}},
          "quantized weight 'fc2.weight': there are 2 int8 values for");
  refuses("fc2.weight/values", SignedBytes{.shape = Shape{3}, .values = {1, 2, 3}},
          "quantized weight 'fc2.weight': there are 3 int8 values for");
  refuses("fc2.weight/scales", Tensor::full(Shape{3}, 1.0f), "there are 3 scales for 18 outputs");
  refuses("fc2.weight/scales", Tensor::full(Shape{18}, NAN), "a scale is nan");
  refuses("fc2.weight/input_zero", int64_t{256}, "input_zero");
  refuses("fc2.weight/input_scale", 0.0, "the scale of its inputs is 0");
  refuses("fc2.weight/values", int64_t{1}, "fc2.weight/values");
  StateDict other = good;
  other.merge("fc7.weight", good.below("fc2.weight"));
  expect_throws<CheckpointError>([&] { run_in_int8(model_, other); },
                                 "'fc7.weight': the model has no such linear layer");
}

}  // namespace
}  // namespace lacuna::quantize_model_test
