#include "lacuna/layers/tokens/token_embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/tokens/token_type_embedding.h"
#include "throws.h"

namespace lacuna::token_embedding_test {
namespace {

TEST(TokenEmbeddingLayer, LooksUpRowsAndCollectsTheirGradients) {
  Sequential model;
  auto& wte = model.add<TokenEmbedding>("wte", {.vocab_size = 3, .features = 2, .padding_id = 0});
  EXPECT_EQ(wte.weight()->name(), "wte.weight");
  EXPECT_EQ(wte.weight()->use, WeightUse::Embedding);
  wte.weight()->assign(Tensor::from({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Variable y = model(token_ids(IndexTensor({2, 2}, {2, 0, 2, 1})));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{5, 6, 1, 2, 5, 6, 3, 4}));
  backward(sum(y));
  EXPECT_EQ(wte.weight()->gradient().to_vector(), (std::vector<float>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(wte.output_shape({7}), (Shape{7, 2}));
}

TEST(TokenEmbeddingLayer, DrawsAsPyTorchDoes) {
  const auto deviation = [](const TokenEmbedding& layer) {
    double squares = 0.0;
    for (const float v : layer.weight()->values().to_vector()) {
      squares += static_cast<double>(v) * v;
    }
    return std::sqrt(squares / static_cast<double>(layer.weight()->numel()));
  };
  EXPECT_NEAR(deviation(TokenEmbedding({.vocab_size = 500, .features = 40})), 1.0, 0.02);
  const TokenEmbedding small(
      {.vocab_size = 500, .features = 40, .init = {WeightInit::Normal, 0.02}});
  EXPECT_NEAR(deviation(small), 0.02, 4e-4);
}

TEST(TokenEmbeddingLayer, RefusesWhatDoesNotFit) {
  Sequential model;
  model.add<TokenEmbedding>("wte", {.vocab_size = 3, .features = 2});
  expect_throws<DataError>(
      [&] {
        model(token_ids(IndexTensor({1, 2}, {0, 3})));
      },
      "layer 'wte': embedding: id 3 at [0, 1] is out of range: the vocabulary has 3 ids");
  expect_throws<StateError>(
      [&] {
        model(Tensor::zeros({1, 2}));
      },
      "layer 'wte' (token_embedding): its input [1, 2] holds no token ids");
  expect_throws<ShapeError>(
      [&] {
        model.output_shape({2, 2});
      },
      "layer 'wte' (token_embedding): a weight of shape [3, 2] needs examples of ids [T], found "
      "[2, 2]");
  expect_throws<ConfigError>([] { TokenEmbedding({.vocab_size = 0, .features = 2}); },
                             "vocab_size and features must be at least 1, found 0 and 2");
  expect_throws<ConfigError>(
      [] { TokenEmbedding({.vocab_size = 3, .features = 2, .padding_id = 3}); },
      "padding_id 3 is not in a vocabulary of 3 ids");
  expect_throws<ConfigError>(
      [] { TokenEmbedding({.vocab_size = 3, .features = 2, .init = WeightInit::XavierNormal}); },
      "token_embedding: an embedding has no fan-in");
}

TEST(TokenTypeEmbeddingLayer, AddsTheRowOfEachTokensType) {
  Sequential model;
  auto& types = model.add<TokenTypeEmbedding>("types", {.types = 2, .features = 1});
  types.weight()->assign(Tensor::from({2, 1}, std::vector<float>{10, 20}));
  const Variable x = Tensor::from({1, 3, 1}, std::vector<float>{1, 2, 3});
  EXPECT_EQ(model(x).value().to_vector(), (std::vector<float>{11, 12, 13}));
  const NamedTensors batch{{"token_type_ids", IndexTensor({1, 3}, {0, 1, 1})}};
  {
    const NamedInputs scope(batch);
    const Variable y = model(x);
    EXPECT_EQ(y.value().to_vector(), (std::vector<float>{11, 22, 23}));
    backward(sum(y));
    EXPECT_EQ(types.weight()->gradient().to_vector(), (std::vector<float>{1, 2}));
    expect_throws<ShapeError>(
        [&] {
          model(Tensor::zeros({1, 2, 1}));
        },
        "layer 'types' (token_type_embedding): 'token_type_ids' has shape [1, 3], the tokens [1, "
        "2]");
  }
  const NamedTensors wrong{{"token_type_ids", IndexTensor({1, 3}, {0, 2, 1})}};
  const NamedInputs scope(wrong);
  expect_throws<DataError>([&] { model(x); },
                           "layer 'types', token_type_ids: embedding: id 2 at [0, 1]");
  expect_throws<ShapeError>(
      [&] {
        types.output_shape({3, 2});
      },
      "a weight of shape [2, 1] needs examples of shape [T, 1], found [3, 2]");
}

}  // namespace
}  // namespace lacuna::token_embedding_test
