#include "lacuna/framework/autograd/ops/loss.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/rowwise/loss_reference.h"

namespace lacuna {
namespace {

using test::ComplexArray;
using testing::ThrowsMessage;

IndexTensor labels_of(int64_t examples, int64_t classes) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < examples; ++i) labels.push_back(i * 7 % classes);
  return IndexTensor({examples}, labels);
}

TEST(CrossEntropyOp, DerivativesAgreeWithTheDefinition) {
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    for (const Shape& shape :
         {Shape{1, 1}, Shape{1, 10}, Shape{7, 10}, Shape{5, 17}, Shape{67, 3}}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        const IndexTensor labels = labels_of(shape[0], shape[1]);
        test::check_derivatives({
            .shapes = {shape},
            .op =
                [&](const auto& in) {
                  return cross_entropy(in[0], labels, {.label_smoothing = smoothing});
                },
            .definition =
                [&](const auto& in) {
                  test::Complex total = 0.0;
                  for (int64_t i = 0; i < shape[0]; ++i) {
                    total += reference::cross_entropy(in[0].data() + i * shape[1], shape[1],
                                                      labels.values()[static_cast<size_t>(i)],
                                                      smoothing);
                  }
                  return ComplexArray{total / static_cast<double>(shape[0])};
                },
            .spread = 3.0,
            .tolerance = 1e-6,
            .order = order,
        });
      }
    }
  }
}

TEST(CrossEntropyOp, BadInputIsNamed) {
  const Variable logits = Tensor::zeros({2, 3});
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, IndexTensor({3}, {0, 1, 2}));
      },
      ThrowsMessage<ShapeError>("cross_entropy: needs logits [examples, classes] and "
                                "labels [examples], found [2, 3] and [3]"));
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, IndexTensor({2}, {0, 3}));
      },
      ThrowsMessage<DataError>("cross_entropy: label 3 of example 1 is out of range: there "
                               "are 3 classes, counted from 0"));
  EXPECT_THROW(cross_entropy(logits, IndexTensor({2}, {-1, 0})), DataError);
  EXPECT_THAT(
      [&] {
        cross_entropy(Tensor::zeros({0, 3}), IndexTensor({0}, {}));
      },
      ThrowsMessage<ShapeError>("cross_entropy: needs at least one example and one class, "
                                "found logits [0, 3]"));
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, IndexTensor({2}, {0, 1}), {.label_smoothing = 1.5});
      },
      ThrowsMessage<ConfigError>(
          "cross_entropy: label_smoothing must be in [0, 1], found 1.500000"));
}

TEST(MseLossOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7, 5}, Shape{67, 3}, Shape{2, 3, 17}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      test::check_derivatives({
          .shapes = {shape, shape},
          .op = [](const auto& in) { return mse_loss(in[0], in[1]); },
          .definition =
              [&](const auto& in) {
                const auto total = reference::sum_squared_difference<test::Complex>(
                    in[0].data(), in[1].data(), shape.numel());
                return ComplexArray{total / static_cast<double>(shape.numel())};
              },
          .tolerance = 1e-6,
          .order = order,
      });
    }
  }
}

TEST(MseLossOp, BadInputIsNamed) {
  EXPECT_THAT(
      [] {
        mse_loss(Tensor::zeros({2, 3}), Tensor::zeros({3}));
      },
      ThrowsMessage<ShapeError>("mse_loss: prediction and target differ in shape: [2, 3] and [3]"));
  EXPECT_THAT([] { mse_loss(Tensor::zeros({0}), Tensor::zeros({0})); },
              ThrowsMessage<ShapeError>("mse_loss: needs at least one element, found [0]"));
}

}  // namespace
}  // namespace lacuna
