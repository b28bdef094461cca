#include "lacuna/framework/autograd/tokens/tokens.h"

#include <gtest/gtest.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::tokens_test {
namespace {

TEST(SelectTokenOp, DerivativesAgreeWithTheDefinition) {
  for (const int64_t index : {0, 2, -1}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      test::check_derivatives({
          .shapes = {Shape{2, 3, 4}},
          .op = [&](const auto& in) { return select_token(in[0], index); },
          .definition =
              [&](const auto& in) {
                const int64_t token = index < 0 ? 2 : index;
                test::ComplexArray y;
                for (int64_t b = 0; b < 2; ++b) {
                  const auto row = in[0].begin() + (b * 3 + token) * 4;
                  y.insert(y.end(), row, row + 4);
                }
                return y;
              },
          .tolerance = 1e-6,
          .order = order,
      });
    }
  }
}

TEST(SelectTokensOp, DerivativesAgreeWithTheDefinition) {
  const std::vector<std::vector<int64_t>> all{{0, 2, 5}, {4}, {0, 1, 2, 3, 4, 5}};
  for (const std::vector<int64_t>& places : all) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      test::check_derivatives({
          .shapes = {Shape{2, 3, 4}},
          .op =
              [&](const auto& in) {
                return select_tokens(
                    in[0], IndexTensor(Shape{static_cast<int64_t>(places.size())}, places));
              },
          .definition =
              [&](const auto& in) {
                test::ComplexArray y;
                for (const int64_t place : places) {
                  y.insert(y.end(), in[0].begin() + place * 4, in[0].begin() + place * 4 + 4);
                }
                return y;
              },
          .tolerance = 1e-6,
          .order = order,
      });
    }
  }
}

TEST(MeanOfTokensOp, DerivativesAgreeWithTheDefinition) {
  const std::vector<std::vector<double>> weights{{0.5, 0, 0.5}, {0, 0, 0}};
  test::check_derivatives({
      .shapes = {Shape{2, 3, 2}},
      .op =
          [](const auto& in) {
            return mean_of_tokens(in[0], IndexTensor({2, 3}, {1, 0, 1, 0, 0, 0}));
          },
      .definition =
          [&](const auto& in) {
            test::ComplexArray y(4);
            for (size_t at = 0; at < 12; ++at)
              y[at / 6 * 2 + at % 2] += weights[at / 6][at / 2 % 3] * in[0][at];
            return y;
          },
      .tolerance = 1e-6,
  });
  const Tensor x = Tensor::from({1, 2, 2}, std::vector<float>{1, 2, 3, 6});
  EXPECT_EQ(mean_of_tokens(x).value().to_vector(), (std::vector<float>{2, 4}));
}

TEST(TokenIds, AreReadWhetherOperationsAreRecordedOrNot) {
  const IndexTensor numbers(Shape{3}, {4, 0, 7});
  const Variable recorded = token_ids(numbers);
  const NoGrad no_grad;
  const Variable not_recorded = token_ids(numbers);
  for (const Variable& ids : {recorded, not_recorded}) {
    ASSERT_NE(ids_of(ids), nullptr);
    EXPECT_EQ(ids_of(ids)->values()[2], 7);
    EXPECT_EQ(ids.value().to_vector(), (std::vector<float>{4, 0, 7}));
  }
}

TEST(TokenOps, RefuseWhatDoesNotFit) {
  expect_throws<ShapeError>(
      [] {
        select_token(Tensor::zeros({2, 3, 4}), 3);
      },
      "select_token: needs [batch, T, features] with a token 3, found [2, 3, 4]");
  expect_throws<ShapeError>(
      [] {
        select_tokens(Tensor::zeros({2, 3, 4}), IndexTensor({1, 1}, {0}));
      },
      "select_tokens: needs [batch, T, features] and places [n], found [2, 3, 4] and [1, 1]");
  for (const auto& [places, words] : std::vector<std::pair<std::vector<int64_t>, const char*>>{
           {{0, 6},
            "select_tokens: place 6 is out of range: the batch has 6 tokens, counted from 0"},
           {{-1, 0}, "select_tokens: place -1 is out of range"},
           {{2, 2}, "select_tokens: place 2 follows 2; places must ascend"}}) {
    expect_throws<DataError>(
        [&places = places] {
          select_tokens(Tensor::zeros({2, 3, 4}), IndexTensor({2}, places));
        },
        words);
  }
  expect_throws<ShapeError>(
      [] {
        mean_of_tokens(Tensor::zeros({2, 3, 4}), IndexTensor({2, 2}, {1, 1, 1, 1}));
      },
      "mean_of_tokens: needs [batch, T, features] and a mask [batch, T], found [2, 3, 4] and [2, "
      "2]");
}

}  // namespace
}  // namespace lacuna::tokens_test
