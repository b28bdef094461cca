#include "lacuna/framework/autograd/tokens/embedding_bag.h"

#include <gtest/gtest.h>

#include <memory>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/param/row_gradient.h"
#include "throws.h"

namespace lacuna::embedding_bag_test {
namespace {

const IndexTensor& bag_ids() {
  static const IndexTensor ids(Shape{3, 3}, {4, 0, 6, -1, -1, -1, 6, -1, -1});
  return ids;
}
Tensor bag_values() {
  return Tensor::from(Shape{3, 3}, std::vector<float>{2, -1, 0.5, 9, 9, 9, 3, 9, 9});
}

ParameterPtr bag_weight(bool is_sparse) {
  auto weight = std::make_shared<Parameter>(Shape{7, 2}, Initializer::normal(1.0));
  weight->set_name("features.weight");
  weight->use = WeightUse::Embedding;
  weight->sparse_gradient = is_sparse;
  return weight;
}

TEST(EmbeddingBag, AddsTheRowsOfTheFeaturesTimesTheirValues) {
  const ParameterPtr weight = bag_weight(true);
  const std::vector<float> w = weight->to_dense().to_vector();
  const std::vector<float> y = embedding_bag(bag_ids(), bag_values(), weight).value().to_vector();
  for (size_t f = 0; f < 2; ++f) {
    EXPECT_NEAR(y[f], -w[f] + 2 * w[8 + f] + 0.5f * w[12 + f], 1e-6);
    EXPECT_EQ(y[2 + f], 0.0f);
    EXPECT_NEAR(y[4 + f], 3 * w[12 + f], 1e-6);
  }
}

TEST(EmbeddingBag, OnlyRowsThatAreUsedGetAGradient) {
  const ParameterPtr sparse = bag_weight(true), whole = bag_weight(false);
  const Tensor dy = Tensor::from(Shape{3, 2}, std::vector<float>{1, 2, 100, 100, 10, 20});
  for (int pass = 0; pass < 2; ++pass) {
    backward(embedding_bag(bag_ids(), bag_values(), sparse), dy);
    backward(embedding_bag(bag_ids(), bag_values(), whole), dy);
  }
  ASSERT_NE(sparse->row_gradient(), nullptr);
  EXPECT_EQ(sparse->row_gradient()->rows, (std::vector<int64_t>{0, 4, 6}));
  EXPECT_EQ(sparse->gradient().to_vector(),
            (std::vector<float>{-2, -4, 0, 0, 0, 0, 0, 0, 4, 8, 0, 0, 61, 122}));
  EXPECT_EQ(whole->gradient().to_vector(), sparse->gradient().to_vector());
  sparse->trainable = false;
  EXPECT_FALSE(embedding_bag(bag_ids(), bag_values(), sparse).requires_grad());
}

TEST(EmbeddingBag, RefusesWhatDoesNotFit) {
  const ParameterPtr weight = bag_weight(true);
  expect_throws<DataError>(
      [&] {
        embedding_bag(IndexTensor(Shape{2, 1}, {0, 7}), Tensor::zeros(Shape{2, 1}), weight);
      },
      "id 7 of example 1 is out of range: the weight has 7 rows");
  expect_throws<ShapeError>(
      [&] {
        embedding_bag(bag_ids(), Tensor::zeros(Shape{3, 2}), weight);
      },
      "found [3, 3], [3, 2] and [7, 2]");
}

}  // namespace
}  // namespace lacuna::embedding_bag_test
