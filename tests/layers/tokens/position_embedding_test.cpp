#include "lacuna/layers/tokens/position_embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::position_embedding_test {
namespace {

using Form = PositionEmbedding::Form;

TEST(PositionEmbeddingLayer, AddsTheFirstRowsInEitherForm) {
  for (const Form form : {Form::Layer, Form::Parameter}) {
    Sequential model;
    auto& wpe = model.add<PositionEmbedding>("wpe", {.positions = 3, .features = 2, .form = form});
    const bool is_bare = form == Form::Parameter;
    EXPECT_EQ(wpe.weight()->name(), is_bare ? "wpe" : "wpe.weight");
    EXPECT_EQ(wpe.weight()->shape(), (is_bare ? Shape{1, 3, 2} : Shape{3, 2}));
    EXPECT_EQ(wpe.weight()->use, WeightUse::Embedding);
    wpe.weight()->assign(Tensor::from(wpe.weight()->shape(), std::vector<float>{1, 2, 3, 4, 5, 6}));
    const Variable y = model(Tensor::zeros({2, 2, 2}));
    EXPECT_EQ(y.value().to_vector(), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
    backward(sum(y));
    EXPECT_EQ(wpe.weight()->gradient().to_vector(), (std::vector<float>{2, 2, 2, 2, 0, 0}));
    EXPECT_EQ(wpe.weight()->gradient().shape(), wpe.weight()->shape());
  }
}

TEST(PositionEmbeddingLayer, ABareParameterIsSavedUnderItsLayersName) {
  Sequential saved, loaded;
  auto& from =
      saved.add<PositionEmbedding>("pos", {.positions = 2, .features = 1, .form = Form::Parameter});
  auto& to = loaded.add<PositionEmbedding>(
      "pos", {.positions = 2, .features = 1, .form = Form::Parameter});
  from.weight()->assign(Tensor::from({1, 2, 1}, std::vector<float>{3, 4}));
  EXPECT_TRUE(saved.state_dict().contains("pos"));
  loaded.load_state_dict(saved.state_dict());
  EXPECT_EQ(to.weight()->values().to_vector(), (std::vector<float>{3, 4}));
}

TEST(PositionEmbeddingLayer, SinusoidsAreFixed) {
  PositionEmbedding layer(
      {.positions = 50, .features = 6, .kind = PositionEmbedding::Kind::Sinusoidal});
  EXPECT_TRUE(layer.parameters().empty());
  const auto y = layer(Tensor::zeros({1, 20, 6})).value().to_vector();
  for (size_t t = 0; t < 20; ++t) {
    for (size_t j = 0; j < 6; ++j) {
      const double angle =
          static_cast<double>(t) / std::pow(10000.0, static_cast<double>(j / 2 * 2) / 6.0);
      EXPECT_NEAR(y[6 * t + j], j % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-6);
    }
  }
}

TEST(PositionEmbeddingLayer, RefusesWhatDoesNotFit) {
  Sequential model;
  auto& wpe = model.add<PositionEmbedding>("wpe", {.positions = 3, .features = 2});
  expect_throws<ShapeError>(
      [&] {
        model(Tensor::zeros({1, 4, 2}));
      },
      "layer 'wpe' (position_embedding): there are 3 positions, the sequence "
      "has 4: shape [4, 2]");
  expect_throws<ShapeError>(
      [&] {
        wpe.output_shape({3, 5});
      },
      "vectors of shape [3, 2] need examples of shape [T, 2], found [3, 5]");
  expect_throws<ConfigError>([] { PositionEmbedding({.positions = 0, .features = 2}); },
                             "positions and features must be at least 1, found 0 and 2");
}

}  // namespace
}  // namespace lacuna::position_embedding_test
