#include "lacuna/framework/autograd/tokens/embedding.h"

#include <gtest/gtest.h>

#include <memory>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna {
namespace {

IndexTensor ids() { return IndexTensor({2, 3}, {4, 0, 4, 1, 4, 2}); }

TEST(EmbeddingOp, DerivativesAgreeWithTheDefinition) {
  test::check_derivatives({
      .shapes = {Shape{5, 3}},
      .op = [](const auto& in) { return embedding(ids(), in[0]); },
      .definition =
          [](const auto& in) {
            test::ComplexArray y;
            const IndexTensor all = ids();
            for (const int64_t id : all.values()) {
              y.insert(y.end(), in[0].begin() + 3 * id, in[0].begin() + 3 * id + 3);
            }
            return y;
          },
      .tolerance = 1e-6,
  });
}

TEST(EmbeddingOp, AParameterCollectsItsGradientsWhereItKeepsThem) {
  const auto weight = std::make_shared<Parameter>(Shape{5, 2}, Initializer::normal(1.0));
  weight->set_name("wte.weight");
  const Variable y = embedding(ids(), weight);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 2}));
  const Tensor dy = Tensor::full({2, 3, 2}, 1.0f);
  backward(y, dy);
  EXPECT_EQ(weight->gradient().to_vector(), (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0, 3, 3}));
  backward(embedding(ids(), weight), dy);
  EXPECT_EQ(weight->gradient().to_vector(), (std::vector<float>{2, 2, 2, 2, 2, 2, 0, 0, 6, 6}));
  weight->zero_gradient();
  backward(embedding(ids(), weight, {.padding_id = 4}), dy);
  EXPECT_EQ(weight->gradient().to_vector(), (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0, 0, 0}));
  weight->trainable = false;
  EXPECT_FALSE(embedding(ids(), weight).requires_grad());
}

TEST(EmbeddingOp, IdsOutOfRangeAreNamed) {
  expect_throws<DataError>(
      [] {
        embedding(IndexTensor({2, 2}, {0, 1, 2, 3}), Variable(Tensor::zeros({3, 2})));
      },
      "embedding: id 3 at [1, 1] is out of range: the vocabulary has 3 ids, counted from 0");
  expect_throws<DataError>(
      [] {
        embedding(IndexTensor({2}, {0, -1}), Variable(Tensor::zeros({3, 2})));
      },
      "embedding: id -1 at [1]");
  expect_throws<ShapeError>(
      [] { embedding(IndexTensor({1}, {0}), Variable(Tensor::zeros({3}))); },
      "embedding: needs ids [...] and a weight [vocabulary, features], found [1] and [3]");
}

TEST(TokenIdsVariable, HoldsIntegersUntilItsValueIsAskedFor) {
  const Variable x = token_ids(ids());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  ASSERT_NE(ids_of(x), nullptr);
  EXPECT_EQ(ids_of(x)->values()[3], 1);
  EXPECT_EQ(x.value().to_vector(), (std::vector<float>{4, 0, 4, 1, 4, 2}));
  EXPECT_FALSE(x.requires_grad());
  EXPECT_EQ(ids_of(x), nullptr);
  EXPECT_EQ(ids_of(Variable(Tensor::zeros({2}))), nullptr);
  EXPECT_EQ(ids_of(Variable()), nullptr);
}

}  // namespace
}  // namespace lacuna
