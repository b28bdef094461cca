// Layers of sequences [channels, length] as a configuration says them, and small networks of them,
// trained end to end.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "framework/kernels/test_values.h"
#include "framework/train/tiny_sequences.h"
#include "framework/train/training_steps.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/layers/convolutions/conv1d.h"
#include "state_differences.h"
#include "throws.h"

namespace lacuna::sequence_layers_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Shape kSequence{4, 12};

std::unique_ptr<Sequential> build(const std::string& yaml, const Shape& shape = kSequence) {
  register_builtins();
  const Config model = parse_yaml(yaml, "m.yaml");
  auto built = build_model(model_layers(model), shape);
  model.require_all_read();
  return built;
}

std::string resolved(const std::string& yaml) {
  register_builtins();
  const Config model = parse_yaml(yaml, "m.yaml");
  build_model(model_layers(model), kSequence);
  return model.to_json();
}

void refuses(const std::string& yaml, const std::string& message, const Shape& shape = kSequence) {
  expect_throws<ConfigError>([&] { build(yaml, shape); }, message);
}

TEST(SequenceLayers, AConvolutionTakesItsKeys) {
  const auto model = build(
      "[{type: conv1d, out_channels: 6, kernel: 3, stride: 2, padding: 1, dilation: 2, groups: 2, "
      "bias: false, init: kaiming_normal}]");
  const auto& conv = static_cast<const Conv1d&>(*model->children()[0].second);
  EXPECT_EQ(conv.weight()->shape(), (Shape{6, 2, 3}));
  EXPECT_EQ(conv.bias(), nullptr);
  EXPECT_EQ(conv.weight()->convolution->image, (Extent{1, 12}));
  EXPECT_EQ(conv.weight()->convolution->window,
            (Window{.kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}, .dilation = {1, 2}}));
  EXPECT_EQ(model->output_shape(kSequence), (Shape{6, 5}));
  const std::string text = resolved("[{type: conv1d, out_channels: 6, kernel: 3}]");
  for (const char* words : {"\"stride\": 1", "\"padding\": 0", "\"dilation\": 1", "\"groups\": 1",
                            "\"in_channels\": 4", "\"bias\": true", "\"init\": \"default\""}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  EXPECT_EQ(resolved(text), text);
}

TEST(SequenceLayers, PoolingTakesNumbers) {
  EXPECT_EQ(build("[{type: max_pool, kernel: 3}]")->output_shape(kSequence), (Shape{4, 4}));
  EXPECT_EQ(build("[{type: max_pool, kernel: 3, stride: 2, padding: 1, dilation: 2}]")
                ->output_shape(kSequence),
            (Shape{4, 5}));
  EXPECT_EQ(build("[{type: avg_pool, kernel: 2, stride: 3}]")->output_shape(kSequence),
            (Shape{4, 4}));
  EXPECT_EQ(build("[global_average_pool]")->output_shape(kSequence), (Shape{4}));
  const std::string text = resolved("[{type: max_pool, kernel: 2}, {type: avg_pool, kernel: 2}]");
  EXPECT_THAT(text, HasSubstr("\"stride\": 2"));
  EXPECT_EQ(resolved(text), text);
  refuses("[{type: max_pool, kernel: [1, 2]}]", "0.kernel: expected an integer");
  refuses("[{type: max_pool, kernel: 13}]", "does not fit an image of 1x12");
  refuses("[{type: avg_pool, kernel: 2, padding: 2}]", "more than half of the kernel");
  refuses("[flatten, {type: max_pool, kernel: 2}]",
          "needs examples of shape [channels, height, width] or [channels, length], found [48]");
}

TEST(SequenceLayers, WhatDoesNotFitIsNamed) {
  refuses("[flatten, {type: conv1d, out_channels: 4, kernel: 3}]",
          "layer 'conv1d1' (conv1d) does not fit layer 'flatten1' (flatten) at m.yaml:1:2, which "
          "gives shape [48] per example: this layer needs examples of shape [channels, length], "
          "its input has shape [48]");
  refuses("[{type: conv1d, out_channels: 4, kernel: 3}]",
          "needs examples of shape [channels, length], its input has shape [3, 8, 6]", {3, 8, 6});
  refuses("[{type: conv2d, out_channels: 4, kernel: 3}]",
          "needs examples of shape [channels, height, width], its input has shape [4, 12] "
          "(if these are grey images, data.add_channel: true gives them a channel)");
  refuses("[{type: conv1d, in_channels: 5, out_channels: 4, kernel: 3}]",
          "in_channels is 5, but the examples that reach this layer have shape [4, 12]");
  refuses("- {type: conv1d, name: stem, out_channels: 4, kernel: 13}\n",
          "m.yaml:1:3: 0: layer 'stem' (conv1d) does not fit the data, which gives shape [4, 12] "
          "per example: a kernel of 13 does not fit a length of 12 with padding "
          "0");
  refuses("[{type: conv1d, out_channels: 4, kernel: 4, padding: 1, dilation: 5}]",
          "a kernel of 4 with dilation 5 does not fit a length of 12 with padding 1");
  refuses("[{type: conv1d, out_channels: 4, kernel: 3, groups: 3}]",
          "0.groups: 3 groups do not divide the channels: 4 in (shape [4, 12]), 4 out");
  refuses("[{type: conv1d, out_channels: 5, kernel: 3, groups: 2}]", "5 out");
  refuses("[{type: conv1d, kernel: 3}]", "0.out_channels: a required key is missing");
  refuses("[{type: conv1d, out_channels: 4}]", "0.kernel: a required key is missing");
  refuses("[{type: conv1d, out_channels: 4, kernel: 0}]",
          "0.kernel: expected a number from 1 to 1048576, found '0'");
  refuses("[{type: conv1d, out_channels: 4, kernel: [3]}]", "0.kernel: expected an integer");
  refuses("[{type: conv1d, out_channels: 4, kernel: 3, stride: 0}]",
          "0.stride: expected a number from 1 to 1048576, found '0'");
  refuses("[{type: conv1d, out_channels: 4, kernel: 3, padding: -1}]",
          "0.padding: expected a number from 0 to 1048576, found '-1'");
  refuses("[{type: conv1d, out_channels: 4, kernel: 3, strides: 2}]",
          "unknown key 'strides'; did you mean 'stride'?");
}

TEST(SequenceLayers, FlopsCountEveryPlace) {
  const auto model = build("[{type: conv1d, out_channels: 6, kernel: 3, groups: 2}]");
  const auto rows = module_rows(*model, kSequence);
  const auto all = [](const Parameter& p) { return p.numel(); };
  EXPECT_EQ(count_flops(rows, all).forward, 2 * 6 * 2 * 3 * 10);
}

TEST(SequenceLayers, FanInOfTheModelIsTheirsToo) {
  const auto model =
      build("{init_fan_in: 3, layers: [{type: conv1d, name: conv, out_channels: 400, kernel: 5}]}");
  float largest = 0.0f;
  for (const float v : model->parameter("conv.weight")->values().to_vector()) {
    largest = std::max(largest, std::abs(v));
  }
  EXPECT_NEAR(largest, 1.0f / std::sqrt(3.0f), 1e-2f);  // of 8000 uniform values
}

std::string text_of(const std::string& sparsity) {
  return std::string("data: {type: glyphs, train_size: 256, test_size: 32}\nmodel:\n  layers:") +
         kTinySequenceModel +
         "optimizer: {type: adam, lr: 0.01}\n"
         "train: {batch_size: 40, threads: 1, epochs: 2}\n"
         "sparsity: {param_filter: '" +
         kTinySequenceFilter + "', " + sparsity + "}\n";
}

std::unique_ptr<Experiment> experiment(const std::string& sparsity) {
  return build_experiment(parse_yaml(text_of(sparsity), "e.yaml"));
}

constexpr int64_t kWeights = 3 * (16 * 16 + 16 * 16 + 32 * 16);
const std::vector<std::string> kNames = {"conv1.weight", "conv2.weight", "conv3.weight"};

int64_t kept(const Experiment& e) {
  int64_t total = 0;
  for (const std::string& name : kNames) total += e.model->parameter(name)->pattern()->nnz();
  return total;
}

class SequenceTraining : public testing::Test {
 protected:
  SequenceTraining() { set_num_threads(1); }
  ~SequenceTraining() override { set_num_threads(before_); }

 private:
  const int before_ = num_threads();
};

TEST_F(SequenceTraining, InCsrGoesAsInMasked) {
  const std::string sparsity = "algorithm: static, sparsity: 0.8, distribution: erk, layout: ";
  const auto masked = experiment(sparsity + "masked"), csr = experiment(sparsity + "csr");
  EXPECT_NEAR(static_cast<double>(kept(*csr)), 0.2 * kWeights, 3.0);
  const std::vector<double> a = take_steps(*masked, 14), b = take_steps(*csr, 14);
  EXPECT_LT(std::accumulate(a.begin() + 7, a.end(), 0.0),
            std::accumulate(a.begin(), a.begin() + 7, 0.0));
  for (size_t i = 0; i < a.size(); ++i) {
    // As of images: sums of floats in another order, and what Adam and norms make of that.
    EXPECT_NEAR(a[i], b[i], 1e-5 * a[i]) << i;
  }
  for (const std::string& name : kNames) {
    EXPECT_EQ(csr->model->parameter(name)->pattern()->layout().name(), "csr");
    EXPECT_EQ(csr->model->parameter(name)->mask(), masked->model->parameter(name)->mask());
  }
  // And in evaluation, the norms folded.
  std::vector<std::vector<float>> outputs;
  const NoGrad no_grad;
  for (const auto& e : {masked.get(), csr.get()}) {
    e->model->eval();
    const Variable x = test::normal_tensor("x", {3, 28, 28});
    outputs.push_back((*e->model)(x).value().to_vector());
    EXPECT_EQ(fold_batch_norm(*e->model, {28, 28}), 4);
    outputs.push_back((*e->model)(x).value().to_vector());
  }
  for (const size_t i : {0u, 2u}) {
    EXPECT_LE(test::largest_error(outputs[i + 1], outputs[i]), 1e-5) << i;
  }
}

struct Method {
  std::string options;
  double density = 0.2;  ///< after 6 steps
  bool is_changing = true;
};

TEST_F(SequenceTraining, AlgorithmsAndPatternsKeepTheirSparsity) {
  const std::vector<Method> methods = {
      {"algorithm: static, sparsity: 0.8, init_method: balanced", 0.2, false},
      {"algorithm: static, fan_in: 12, init_method: random", 0.25, false},
      {"algorithm: rigl, sparsity: 0.8, distribution: erk, update: {freq: 2}"},
      {"algorithm: set, sparsity: 0.8, distribution: er, update: {freq: 2}"},
      {"algorithm: gmp, update: {freq: 2}, sparsity: {type: polynomial, init: 0.1, final: 0.8, "
       "start: 0, end: 4}"},
      {"algorithm: static, pattern: {type: nm, n: 2, m: 4}", 0.5, false},
      {"algorithm: rigl, pattern: {type: nm, n: 1, m: 4, group: 4}, update: {freq: 2}", 0.25},
      {"algorithm: rigl, sparsity: 0.75, pattern: {type: block, rows: 2, cols: 4}, update: {freq: "
       "2}",
       0.25},
      {"algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}", 0.5},
  };
  for (const Method& method : methods) {
    std::vector<double> expected;
    for (const char* layout : {"masked", "csr"}) {
      SCOPED_TRACE(method.options + " in " + layout);
      const auto e = experiment(method.options + ", layout: " + layout);
      const ByteArray before = e->model->parameter("conv3.weight")->mask();
      const std::vector<double> losses = take_steps(*e, 6);
      EXPECT_NEAR(static_cast<double>(kept(*e)), method.density * kWeights, 24.0);
      EXPECT_EQ(!(e->model->parameter("conv3.weight")->mask() == before), method.is_changing);
      for (const std::string& name : kNames) {
        const ParameterPtr p = e->model->parameter(name);
        EXPECT_EQ(p->pattern()->layout().name(), layout);
        const ByteArray mask = p->mask();
        const std::vector<float> values = p->to_dense().to_vector();
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_TRUE(std::isfinite(values[i]));
          ASSERT_TRUE(mask.values[i] != 0 || values[i] == 0.0f) << name << " at " << i;
        }
      }
      if (expected.empty()) expected = losses;
      // As of images: after an update two nearly equal scores may be ranked by a rounding.
      for (size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(losses[i], expected[i], i < 2 ? 1e-5 : 5e-3) << i;
      }
    }
  }
}

// Of every four input channels of a tap of an output two.
TEST_F(SequenceTraining, PatternsLieAlongInputChannels) {
  const auto e = experiment(
      "algorithm: rigl, pattern: {type: nm, n: 2, m: 4}, update: {freq: 2}, layout: csr");
  take_steps(*e, 5);
  for (const std::string& name : kNames) {
    const Shape& w = e->model->parameter(name)->shape();
    const ByteArray mask = e->model->parameter(name)->mask();
    for (int64_t o = 0; o < w[0]; ++o) {
      for (int64_t tap = 0; tap < w[2]; ++tap) {
        for (int64_t first = 0; first < w[1]; first += 4) {
          int count = 0;
          for (int64_t c = first; c < first + 4; ++c) {
            count += mask.values[static_cast<size_t>((o * w[1] + c) * w[2] + tap)];
          }
          EXPECT_EQ(count, 2) << name;
        }
      }
    }
  }
}

TEST_F(SequenceTraining, GoesOnFromASavedStateBitForBit) {
  for (const char* layout : {"masked", "csr"}) {
    const std::string sparsity =
        std::string("algorithm: rigl, sparsity: 0.8, update: {freq: 2}, layout: ") + layout;
    const auto whole = experiment(sparsity);
    take_steps(*whole, 3);
    const StateDict saved = whole->state_dict();
    take_steps(*whole, 3);
    const auto resumed = experiment(sparsity);
    resumed->load_state_dict(saved);
    take_steps(*resumed, 3);
    EXPECT_THAT(differences(resumed->state_dict(), whole->state_dict()), IsEmpty()) << layout;
  }
}

}  // namespace
}  // namespace lacuna::sequence_layers_test
