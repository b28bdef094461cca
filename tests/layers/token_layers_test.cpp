// The layers of sequences from configurations, and those of them that are a few lines each.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/builtin.hpp"
#include "lacuna/layers/tokens/class_token.h"
#include "lacuna/layers/tokens/patch_embedding.h"
#include "lacuna/layers/tokens/token_pooling.h"
#include "throws.h"

namespace lacuna::token_layers_test {
namespace {

std::unique_ptr<Module> make(const std::string& name, const Config& options, const Shape& input) {
  static const LayerRegistry registry = [] {
    LayerRegistry all("layer");
    register_layers(all);
    return all;
  }();
  return registry.find(name, options).make(options, input);
}

TEST(TokenLayers, WriteTheirDefaultsIntoTheTree) {
  const Config embedding = Config::map({{"vocab_size", 7}, {"features", 3}});
  const auto layer = make("token_embedding", embedding, {5});
  EXPECT_EQ(layer->output_shape({5}), (Shape{5, 3}));
  EXPECT_EQ(embedding.at("init").required<std::string>("type"), "normal");
  EXPECT_EQ(embedding.at("init").required<double>("std"), 1.0);
  embedding.require_all_read();

  const Config attention = Config::map({{"heads", 2}});
  make("attention", attention, {5, 12});
  EXPECT_EQ(attention.required<int64_t>("kv_heads"), 2);
  EXPECT_EQ(attention.required<std::string>("mask"), "attention_mask");
  EXPECT_EQ(attention.required<bool>("causal"), false);
  attention.require_all_read();

  const Config token = Config::map({});
  EXPECT_EQ(make("class_token", token, {5, 12})->output_shape({5, 12}), (Shape{6, 12}));
  EXPECT_EQ(token.required<std::string>("init"), "zeros");

  const Config position = Config::map({{"positions", 9}, {"form", "parameter"}});
  EXPECT_EQ(make("position_embedding", position, {5, 12})->parameters()[0]->shape(),
            (Shape{1, 9, 12}));
  position.require_all_read();
}

TEST(TokenLayers, NameTheKeyAtFault) {
  const auto refuses = [](const std::string& name, const Config& options, const Shape& input,
                          const std::string& words) {
    expect_throws<ConfigError>([&] { make(name, options, input); }, words);
  };
  refuses("token_embedding", Config::map({{"features", 3}}), {5}, "vocab_size");
  refuses("token_embedding", Config::map({{"features", 3}, {"vocab_size", 0}}), {5}, "vocab_size");
  refuses("token_embedding",
          Config::map({{"features", 3}, {"vocab_size", 4}, {"init", "xavier_normal"}}), {5},
          "an embedding has no fan-in");
  refuses("position_embedding", Config::map({{"positions", 3}, {"form", "bare"}}), {5, 2},
          "layer or parameter");
  refuses("position_embedding", Config::map({{"positions", 3}, {"kind", "fixed"}}), {5, 2},
          "learned or sinusoidal");
  refuses("attention", Config::map({}), {5, 12}, "heads");
  refuses("attention", Config::map({{"heads", 4}, {"kv_heads", 3}}), {5, 12},
          "a divisor of heads, which is 4");
  refuses("attention", Config::map({{"heads", 4}, {"dropout", 1.0}}), {5, 12},
          "a probability in [0, 1)");
  refuses("rotary", Config::map({{"heads", 4}, {"base", 0.0}}), {5, 12}, "base must be above 0");
  refuses("patch_embedding", Config::map({{"features", 3}}), {3, 8, 8}, "patch");
}

TEST(ClassTokenLayer, StandsBeforeEachSequence) {
  Sequential model;
  auto& cls = model.add<ClassToken>("cls_token", {.features = 2});
  EXPECT_EQ(cls.token()->name(), "cls_token");
  cls.token()->assign(Tensor::from({1, 1, 2}, std::vector<float>{8, 9}));
  const Variable x = Variable::leaf(Tensor::from({2, 1, 2}, std::vector<float>{1, 2, 3, 4}));
  const Variable y = model(x);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{8, 9, 1, 2, 8, 9, 3, 4}));
  backward(sum(y));
  EXPECT_EQ(cls.token()->gradient().to_vector(), (std::vector<float>{2, 2}));
  EXPECT_EQ(x.gradient().to_vector(), std::vector<float>(4, 1.0f));
  expect_throws<ShapeError>(
      [&] {
        cls.output_shape({4, 3});
      },
      "layer 'cls_token' (class_token): a token of shape [1, 1, 2] needs examples of shape [T, 2], "
      "found [4, 3]");
}

TEST(PatchEmbeddingLayer, GivesAVectorForEachPatchRowByRow) {
  Sequential model;
  auto& patches =
      model.add<PatchEmbedding>("patch", {.channels = 2, .features = 3, .patch = {2, 3}});
  EXPECT_EQ(patches.weight()->shape(), (Shape{3, 2, 2, 3}));
  EXPECT_EQ(patches.weight()->use, WeightUse::Convolution);
  EXPECT_EQ(patches.output_shape({2, 4, 6}), (Shape{4, 3}));
  EXPECT_EQ(patches.uses_per_weight({2, 4, 6}), 4);
  const Tensor x = test::normal_tensor("x", {2, 2, 4, 6});
  const auto y = model(x).value().to_vector();
  const auto expected =
      conv2d(x, patches.weight(), Variable::of(model.parameter("patch.bias")), {.stride = {2, 3}})
          .value()
          .to_vector();  // [2, 3, 2, 2]
  ASSERT_EQ(y.size(), expected.size());
  for (size_t b = 0; b < 2; ++b) {
    for (size_t f = 0; f < 3; ++f) {
      for (size_t p = 0; p < 4; ++p) {
        EXPECT_EQ(y[(b * 4 + p) * 3 + f], expected[(b * 3 + f) * 4 + p]);
      }
    }
  }
  backward(sum(model(x)));
  EXPECT_EQ(model.parameter("patch.bias")->gradient().to_vector(), std::vector<float>(3, 8.0f));
  expect_throws<ShapeError>(
      [&] {
        patches.output_shape({2, 5, 6});
      },
      "layer 'patch' (patch_embedding): patches of 2x3 do not cover images of shape [2, 5, 6]");
  expect_throws<ShapeError>(
      [&] {
        patches.output_shape({1, 4, 6});
      },
      "a weight of shape [3, 2, 2, 3] needs examples of shape [2, height, width], found [1, 4, 6]");
}

TEST(TokenPoolingLayers, MakeOneVectorOfASequence) {
  const Tensor x = Tensor::from({2, 2, 1}, std::vector<float>{1, 3, 5, 9});
  Sequential model;
  auto& last = model.add<SelectToken>("last", {.index = -1});
  EXPECT_EQ(last(x).value().to_vector(), (std::vector<float>{3, 9}));
  EXPECT_EQ(last.output_shape({2, 1}), (Shape{1}));
  MeanPool mean;
  EXPECT_EQ(mean(x).value().to_vector(), (std::vector<float>{2, 7}));
  EXPECT_EQ(mean.output_shape({2, 1}), (Shape{1}));
  const NamedTensors batch{{"attention_mask", IndexTensor({2, 2}, {1, 1, 1, 0})}};
  const NamedInputs scope(batch);
  EXPECT_EQ(mean(x).value().to_vector(), (std::vector<float>{2, 5}));
  EXPECT_EQ(MeanPool({.mask = ""})(x).value().to_vector(), (std::vector<float>{2, 7}));
  EXPECT_EQ(last(x).value().to_vector(), (std::vector<float>{3, 5}));  // 9 is padding
  EXPECT_EQ(SelectToken({.index = -1, .mask = ""})(x).value().to_vector(),
            (std::vector<float>{3, 9}));
  EXPECT_EQ(SelectToken()(x).value().to_vector(), (std::vector<float>{1, 5}));
  for (const int64_t index : {1, -2}) {
    SelectToken other({.index = index});
    expect_throws<DataError>(
        [&] { other(x); }, "(select_token): sequence 1 of the batch is too short to have a token " +
                               std::to_string(index));
  }
  expect_throws<ShapeError>([&] { mean.output_shape({3}); },
                            "(mean_pool): needs examples of shape [T, features], found [3]");
  LabelledTokens labelled;
  EXPECT_EQ(labelled(x).value().to_vector(), x.to_vector());  // the batch has no labels
  EXPECT_EQ(labelled.output_shape({2, 1}), (Shape{2, 1}));
  const NamedTensors labels{{"labelled_tokens", IndexTensor({2}, {0, 3})}};
  {
    const NamedInputs of_labels(labels);
    const Tensor told = labelled(x).value();
    EXPECT_EQ(told.shape(), (Shape{2, 1}));
    EXPECT_EQ(told.to_vector(), (std::vector<float>{1, 9}));
  }
  const SelectToken third({.index = 2});
  expect_throws<ShapeError>(
      [&] {
        third.output_shape({2, 1});
      },
      "(select_token): there is no token 2 in shape [2, 1]");
}

}  // namespace
}  // namespace lacuna::token_layers_test
