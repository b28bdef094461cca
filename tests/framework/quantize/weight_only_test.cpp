// Weights in int8 with float32 activations: the products of float32, with rounded weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/quantize/float32_values.hpp"
#include "lacuna/framework/quantize/quantize_model.hpp"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/flatten.h"
#include "lacuna/layers/linear.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::weight_only_test {
namespace {

QuantizeOptions options_of(const std::string& yaml) {
  return QuantizeOptions::from_config(parse_yaml("quantize: " + yaml, "q.yaml").at("quantize"));
}

// Keeps some of the weights, in csr if the pattern has no structure; none in one row of csr.
void sparsify(Sequential& model, const std::string& name, const PatternShape& pattern) {
  const ParameterPtr weight = model.parameter(name);
  const int64_t rows = weight->shape()[0], columns = weight->numel() / rows;
  BitMask mask = BitMask::zeros(weight->numel());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const bool is_kept = pattern.is_nm()      ? c % 4 == r % 4 || c % 4 == (r + 1) % 4
                           : pattern.is_block() ? (r / 4 + c / 4) % 2 == 0
                                                : (r * 7 + c * 5) % 11 < 4 && r != 3;
      if (is_kept) mask.set(r * columns + c);
    }
  }
  weight->values();
  const Layout& layout = pattern.is_structured() ? layout_for(pattern) : csr_layout();
  weight->set_pattern(Pattern::make(layout, weight->shape(), mask));
  weight->prune();
}

class WeightOnly : public testing::Test {
 protected:
  WeightOnly() {
    model_.add<Conv2d>("dense_conv", {.in_channels = 3, .out_channels = 6, .kernel = {3, 3}});
    model_.add<ReLU>("relu");
    model_.add<Conv2d>("csr_conv", {.in_channels = 6, .out_channels = 6, .kernel = {2, 2}});
    model_.add<ReLU>("relu2");
    model_.add<Flatten>("flatten");
    model_.add<Linear>("dense", {.in_features = 24, .out_features = 24});
    model_.add<ReLU>("relu3");
    model_.add<Linear>("csr", {.in_features = 24, .out_features = 16});
    model_.add<GELU>("gelu");
    model_.add<Linear>("nm", {.in_features = 16, .out_features = 16});
    model_.add<ReLU>("relu4");
    model_.add<Linear>("block", {.in_features = 16, .out_features = 8, .bias = false});
    model_.initialize(5);
    sparsify(model_, "csr_conv.weight", {});
    sparsify(model_, "csr.weight", {});
    sparsify(model_, "nm.weight", PatternShape::nm(2, 4));
    sparsify(model_, "block.weight", PatternShape::block(4, 4));
    model_.eval();
  }
  QuantizedModel quantize(const std::string& keys) {
    const QuantizeOptions options =
        options_of("{param_filter: '*.weight', activations: {when: none}" + keys + "}");
    const CalibrationRun run = [this](Module& model) { model(Variable(inputs_)); };
    return quantize_model(model_, int8_candidates(model_, options), options,
                          options.needs_examples() ? run : CalibrationRun());
  }
  std::vector<float> outputs() {
    const NoGrad no_grad;
    return model_(Variable(inputs_)).value().to_vector();
  }
  // Dense, as the scales and values of a layer say.
  static Tensor rounded(const QuantizedLayer& layer, const Parameter& weight) {
    Tensor dense = Tensor::zeros(weight.shape());
    size_t place = 0;
    for (int64_t i = 0; i < dense.numel(); ++i) {
      const Pattern& pattern = *weight.pattern();
      if (!pattern.is_dense() && !pattern.mask().test(i)) continue;
      const auto row = static_cast<size_t>(i / matrix_columns(weight.shape()));
      dense.mutable_data()[i] = layer.scales[row] * static_cast<float>(layer.values[place++]);
    }
    EXPECT_EQ(place, layer.values.size());
    return dense;
  }

  Tensor inputs_ = random_tensor(Shape{40, 3, 5, 5}, "inputs");
  Sequential model_;
};

TEST_F(WeightOnly, OutputsAreThoseOfFloat32WithTheRoundedWeights) {
  const StateDict saved = model_.state_dict();
  const std::vector<float> before = outputs();
  for (const char* keys : {"", ", algorithm: nearest", ", weights: {clip: max}"}) {
    model_.load_state_dict(saved);
    const std::vector<QuantizedLayer> layers = quantize(keys).layers;
    ASSERT_EQ(layers.size(), 6u);
    model_.load_state_dict(saved);
    for (const QuantizedLayer& layer : layers) {
      Parameter& weight = *model_.parameter(layer.weight);
      weight.assign(rounded(layer, weight));
    }
    const std::vector<float> expected = outputs();
    EXPECT_NE(expected, before);
    model_.load_state_dict(saved);
    run_in_int8(model_, state_of(layers));
    EXPECT_EQ(outputs(), expected) << keys;
  }
  EXPECT_EQ(model_.parameter("nm.weight")->pattern()->layout().name(), "nm 2:4");
  for (Module* module : model_.modules()) {
    if (auto* layer = dynamic_cast<Linear*>(module)) {
      EXPECT_EQ(layer->int8(), nullptr);
    }
  }
}

TEST_F(WeightOnly, StatesHaveNoRangesOfActivations) {
  const StateDict state = state_of(quantize("").layers);
  for (const QuantizedLayer& layer : quantized_layers(state)) {
    EXPECT_FALSE(layer.rounds_inputs);
    EXPECT_FALSE(layer.input.has_value());
    EXPECT_EQ(state.get<double>(layer.weight + "/input_scale"), 0.0);
    EXPECT_FALSE(state.contains(layer.weight + "/input_zero"));
  }
  EXPECT_TRUE(have_float32_inputs(quantized_layers(state)));
  EXPECT_FALSE(have_float32_inputs({}));
}

TEST_F(WeightOnly, NearestNeedsNoExamples) {
  EXPECT_FALSE(options_of("{algorithm: nearest, activations: {when: none}}").needs_examples());
  EXPECT_TRUE(options_of("{algorithm: gptq, activations: {when: none}}").needs_examples());
  inputs_ = Tensor();
  EXPECT_EQ(quantize(", algorithm: nearest").layers.size(), 6u);
}

// Of the outputs, whose errors those of the layers before are part of.
TEST_F(WeightOnly, ByGptqLosesLessThanByRounding) {
  const StateDict saved = model_.state_dict();
  const std::vector<float> before = outputs();
  const auto lost = [&](const char* keys) {
    model_.load_state_dict(saved);
    quantize(keys);
    const std::vector<float> after = outputs();
    double sum = 0.0;
    for (size_t i = 0; i < after.size(); ++i) {
      const double difference = static_cast<double>(after[i]) - static_cast<double>(before[i]);
      sum += difference * difference;
    }
    return sum;
  };
  EXPECT_LT(lost(", algorithm: gptq"), 0.8 * lost(", algorithm: nearest"));
}

TEST_F(WeightOnly, RefusesStatesThatDoNotFit) {
  const StateDict good = state_of(quantize("").layers);
  const auto refuses = [&](const std::string& name, const StateDict::Value& value,
                           const std::string& words) {
    StateDict bad = good;
    bad.set(name, value);
    expect_throws<CheckpointError>([&] { run_in_int8(model_, bad); }, words);
  };
  refuses("csr.weight/input_zero", int64_t{3}, "'csr.weight': the scale of its inputs is 0");
  refuses("csr.weight/input_scale", -1.0, "csr.weight/input_scale");
  refuses("csr.weight/values", SignedBytes{.shape = Shape{2}, .values = {1, 2}},
          "'csr.weight': there are 2 int8 values for");
  refuses("nm.weight/scales", Tensor::full(Shape{3}, 1.0f), "there are 3 scales for 16 outputs");
  StateDict mixed = good;
  mixed.set("nm.weight/input_scale", 0.5);
  mixed.set("nm.weight/input_zero", int64_t{3});
  expect_throws<CheckpointError>(
      [&] { run_in_int8(model_, mixed); },
      "quantized weight 'nm.weight': its inputs are rounded, unlike those of 'block.weight'");
}

TEST(WeightOnlyOptions, RefuseKeysWithoutAMeaning) {
  const auto refuses = [](const std::string& yaml, const std::string& words) {
    expect_throws<ConfigError>([&] { options_of(yaml); }, words);
  };
  for (const std::string key : {"bits: 8", "observer: mse", "percentile: 99.9"}) {
    const std::string name = key.substr(0, key.find(':'));
    refuses("{activations: {when: none, " + key + "}}",
            "quantize.activations." + name +
                ": activations are not rounded with `when: none`; leave `" + name + "` out");
  }
  refuses("{smooth: 0.5, activations: {when: none}}", "quantize.smooth: smoothing makes");
  refuses("{algorithm: nearest, activations: {when: none}, calibration: 64}",
          "nearest with float32 activations learns nothing from examples");
}

// The state of a checkpoint with int8 values alone, of a dense convolution [2, 1, 3, 1].
StateDict without_floats(const std::vector<int64_t>& shape) {
  StateDict state;
  const QuantizedLayer layer{
      .weight = "conv.weight", .values = {1, -2, 3, 4, 5, 6}, .scales = {0.5f, 2.0f}};
  state.merge("quantized", state_of({layer}));
  state.set("model/conv.weight/shape", shape);
  return state;
}

TEST(WithoutFloat32, GivesTheValuesTheShapeOfTheWeight) {
  const StateDict model = model_state(without_floats({2, 1, 3, 1}));
  EXPECT_FALSE(model.contains("conv.weight/shape"));
  const Tensor& weight = model.get<Tensor>("conv.weight");
  EXPECT_EQ(weight.shape(), (Shape{2, 1, 3, 1}));
  EXPECT_EQ(weight.to_vector(), (std::vector<float>{0.5f, -1.0f, 1.5f, 8.0f, 10.0f, 12.0f}));
  StateDict whole = without_floats({});
  whole.erase("model/conv.weight/shape");
  whole.set("model/conv.weight", weight);
  EXPECT_EQ(without_float32(whole).get<std::vector<int64_t>>("conv.weight/shape"),
            (std::vector<int64_t>{2, 1, 3, 1}));
}

// The batch_norm stays, so its factors are taken out of the scales: one is negative, one is 0.
TEST(WithoutFloat32, KeepsTheScalesThatANormIsNotPartOf) {
  StateDict whole = without_floats({});
  whole.erase("model/conv.weight/shape");
  whole.set("model/conv.weight", Tensor::zeros({2, 1, 3, 1}));
  for (const double second : {4.0, 0.0, 1e-41}) {
    StateDict state = whole;
    state.erase("model/conv.weight");
    state.merge("model", without_float32(whole, {{"conv.weight", {-0.25, second}}}));
    const StateDict model = model_state(state);
    EXPECT_FALSE(model.contains("conv.weight/unfolded_scales"));
    const float scale = second < 1.0 ? 0.0f : 0.5f;
    EXPECT_EQ(model.get<Tensor>("conv.weight").to_vector(),
              (std::vector<float>{-2.0f, 4.0f, -6.0f, 4.0f * scale, 5.0f * scale, 6.0f * scale}));
  }
}

TEST(WithoutFloat32, RefusesUnfoldedScalesThatAreNone) {
  for (const std::vector<float>& scales :
       {std::vector<float>{1.0f}, {1.0f, std::numeric_limits<float>::infinity()}}) {
    StateDict state = without_floats({2, 1, 3, 1});
    state.set("model/conv.weight/unfolded_scales",
              Tensor::from(Shape{static_cast<int64_t>(scales.size())}, scales));
    expect_throws<CheckpointError>(
        [&] { model_state(state); },
        "quantized weight 'conv.weight': its unfolded scales are not one finite number for each of "
        "its 2 outputs");
  }
}

TEST(WithoutFloat32, RefusesShapesThatDoNotFit) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 1, 3, 2}, {2, 1, 2, 1}, {3, 2}, {2, 0, 3}, {2, -3, -1}, {6}}) {
    expect_throws<CheckpointError>([&] { model_state(without_floats(shape)); },
                                   "quantized weight 'conv.weight': its shape does not fit 6 int8");
  }
}

}  // namespace
}  // namespace lacuna::weight_only_test
