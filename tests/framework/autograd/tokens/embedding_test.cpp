#include "lacuna/framework/autograd/tokens/embedding.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/param/row_gradient.h"
#include "throws.h"

namespace lacuna::embedding_test {
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

// The same bits as of a gradient of all rows, over several backward passes.
TEST(EmbeddingOp, ASparseGradientIsThatOfTheRowsUsed) {
  for (const int64_t padding : {-1, 0, 4}) {
    const auto make = [](bool sparse) {
      auto weight = std::make_shared<Parameter>(Shape{9, 2}, Initializer::normal(1.0));
      weight->sparse_gradient = sparse;
      return weight;
    };
    const auto sparse = make(true), whole = make(false);
    for (const IndexTensor& batch : {ids(), IndexTensor({2, 2}, {8, 4, 0, 8})}) {
      Tensor dy = Tensor::empty(Shape{batch.shape()[0], batch.shape()[1], 2});
      for (int64_t i = 0; i < dy.numel(); ++i) {
        dy.mutable_data()[i] = 0.1f * static_cast<float>(i * i % 7) - 0.3f;
      }
      backward(embedding(batch, sparse, {.padding_id = padding}), dy);
      backward(embedding(batch, whole, {.padding_id = padding}), dy);
    }
    std::vector<int64_t> used = {0, 1, 2, 4, 8};
    std::erase(used, padding);
    ASSERT_NE(sparse->row_gradient(), nullptr);
    EXPECT_EQ(sparse->row_gradient()->rows, used);
    EXPECT_EQ(sparse->gradient().to_vector(), whole->gradient().to_vector());
  }
}

// A table that a linear layer is tied to may be stored in any layout.
TEST(EmbeddingOp, ReadsRowsOfACompressedWeight) {
  const auto make = [](const Layout& layout) {
    auto weight = std::make_shared<Parameter>(Shape{5, 3}, Initializer::normal(1.0));
    weight->set_name("wte.weight");
    weight->use = WeightUse::Embedding;
    weight->is_tied = true;
    BitMask mask = BitMask::zeros(15);
    for (const int64_t i : {0, 2, 4, 12, 13}) mask.set(i);
    weight->set_pattern(Pattern::make(layout, weight->shape(), mask));
    return weight;
  };
  const auto csr = make(csr_layout()), masked = make(masked_layout());
  Tensor dy = Tensor::empty(Shape{2, 3, 3});
  for (int64_t i = 0; i < dy.numel(); ++i) dy.mutable_data()[i] = static_cast<float>(i % 5);
  std::vector<std::vector<float>> outputs;
  for (const ParameterPtr& weight : {csr, masked}) {
    for (int pass = 0; pass < 2; ++pass) {
      const Variable y = embedding(ids(), weight, {.padding_id = 1});
      outputs.push_back(y.value().to_vector());
      backward(y, dy);
    }
  }
  EXPECT_EQ(outputs[0], outputs[2]);
  EXPECT_EQ(csr->compacted(csr->gradient()).to_vector(),
            masked->compacted(masked->gradient()).to_vector());
  csr->is_tied = false;
  EXPECT_THROW(embedding(ids(), csr), Error);
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
}  // namespace lacuna::embedding_test
