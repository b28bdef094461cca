#include "lacuna/framework/autograd/ops/loss.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/rowwise/loss_reference.hpp"

namespace lacuna::loss_test {
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
                    const int64_t label = labels.values()[static_cast<size_t>(i)];
                    total += reference::cross_entropy(in[0].data() + i * shape[1], shape[1], label,
                                                      {shape[1], smoothing, nullptr, 0.0, label});
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

TEST(CrossEntropyOp, IgnoredLabelsOfTokensCountInNoSum) {
  const Shape shape{3, 5, 7};
  std::vector<int64_t> values(15);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 3 == 1 ? kIgnoredLabel : static_cast<int64_t>(i) % 7;
  }
  const IndexTensor labels(Shape{3, 5}, values);
  for (const double smoothing : {0.0, 0.1}) {
    test::check_derivatives({
        .shapes = {shape},
        .op =
            [&](const auto& in) {
              return cross_entropy(in[0], labels, {.label_smoothing = smoothing});
            },
        .definition =
            [&](const auto& in) {
              test::Complex total = 0.0;
              for (size_t i = 0; i < values.size(); ++i) {
                if (values[i] == kIgnoredLabel) continue;
                total += reference::cross_entropy(in[0].data() + i * 7, 7, values[i],
                                                  {7, smoothing, nullptr, 0.0, values[i]});
              }
              return ComplexArray{total / 10.0};
            },
        .spread = 3.0,
        .tolerance = 1e-6,
    });
  }
}

TEST(MixedCrossEntropyOp, DerivativesAgreeWithTheDefinition) {
  const Shape shape{5, 4};
  const IndexTensor own = labels_of(5, 4), other(Shape{5}, {0, 0, 3, 1, 0});
  const std::vector<float> shares = {0.5f, 1.0f, 0.75f, 0.625f, 0.5f};
  for (const double smoothing : {0.0, 0.1}) {
    test::check_derivatives({
        .shapes = {shape},
        .op =
            [&](const auto& in) {
              return mixed_cross_entropy(in[0], own, other, shares, {.label_smoothing = smoothing});
            },
        .definition =
            [&](const auto& in) {
              test::Complex total = 0.0;
              for (int64_t i = 0; i < 5; ++i) {
                const auto at = static_cast<size_t>(i);
                const auto of = [&](int64_t label) {
                  return reference::cross_entropy(in[0].data() + i * 4, 4, label,
                                                  {4, smoothing, nullptr, 0.0, label});
                };
                total += double{shares[at]} * of(own.values()[at]) +
                         (1.0 - double{shares[at]}) * of(other.values()[at]);
              }
              return ComplexArray{total / 5.0};
            },
        .spread = 3.0,
        .tolerance = 1e-6,
    });
  }
}

TEST(MixedCrossEntropyOp, BadInputIsNamed) {
  const Variable logits = Tensor::full(Shape{2, 3}, 0.5f);
  const IndexTensor labels(Shape{2}, {0, 2});
  const std::vector<float> shares = {0.5f, 0.5f};
  EXPECT_THROW(mixed_cross_entropy(logits, labels, labels, {shares.data(), 1}), ShapeError);
  EXPECT_THROW(mixed_cross_entropy(logits, labels, IndexTensor(Shape{2}, {0, 3}), shares),
               DataError);
  EXPECT_THROW(
      mixed_cross_entropy(logits, labels, labels, shares, {.class_weights = {1.0f, 1.0f, 1.0f}}),
      ConfigError);
}

TEST(CrossEntropyOp, IsZeroWhereAllLabelsAreIgnored) {
  const Variable logits = Variable::leaf(Tensor::full(Shape{2, 3}, 0.5f));
  const IndexTensor labels(Shape{2}, {kIgnoredLabel, kIgnoredLabel});
  const Variable loss = cross_entropy(logits, labels);
  EXPECT_EQ(loss.value().item(), 0.0f);
  backward(loss);
  EXPECT_THAT(logits.gradient().to_vector(), testing::Each(0.0f));
}

// Against the sum over classes that PyTorch documents.
TEST(CrossEntropyOp, DerivativesWithClassWeightsAgreeWithTheDefinition) {
  const std::vector<float> weights{0.5f, 2.0f, 0.0f};
  for (const double smoothing : {0.0, 0.25}) {
    const Shape shape{7, 3};
    const IndexTensor labels = labels_of(7, 3);
    test::check_derivatives({
        .shapes = {shape},
        .op =
            [&](const auto& in) {
              return cross_entropy(in[0], labels,
                                   {.label_smoothing = smoothing, .class_weights = weights});
            },
        .definition =
            [&](const auto& in) {
              test::Complex total = 0.0;
              double weight_sum = 0.0;
              for (size_t i = 0; i < 7; ++i) {
                const auto label = static_cast<size_t>(labels.values()[i]);
                const test::Complex* x = in[0].data() + 3 * i;
                const test::Complex logarithm =
                    std::log(std::exp(x[0]) + std::exp(x[1]) + std::exp(x[2]));
                for (size_t j = 0; j < 3; ++j) {
                  const double q = smoothing / 3.0 + (j == label ? 1.0 - smoothing : 0.0);
                  total += q * double{weights[j]} * (logarithm - x[j]);
                }
                weight_sum += weights[label];
              }
              return ComplexArray{total / weight_sum};
            },
        .tolerance = 1e-6,
    });
  }
}

TEST(CrossEntropyOp, LabelsWithoutWeightGiveNoLossAndNoGradient) {
  const Variable logits = Variable::leaf(Tensor::from({1, 2}, std::vector<float>{1.0f, 3.0f}));
  const Variable loss =
      cross_entropy(logits, IndexTensor({1}, {0}), {.class_weights = {0.0f, 1.0f}});
  EXPECT_EQ(loss.value().item(), 0.0f);
  backward(loss);
  EXPECT_EQ(logits.gradient().to_vector(), (std::vector<float>{0.0f, 0.0f}));
}

TEST(CrossEntropyOp, BadInputIsNamed) {
  const Variable logits = Tensor::zeros({2, 3});
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, IndexTensor({3}, {0, 1, 2}));
      },
      ThrowsMessage<ShapeError>("cross_entropy: needs logits [examples, ..., classes] and "
                                "labels [examples, ...], found [2, 3] and [3]"));
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, IndexTensor({2}, {0, 3}));
      },
      ThrowsMessage<DataError>("cross_entropy: label 3 at index 1 is out of range for 3 "
                               "classes, counted from 0"));
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
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, IndexTensor({2}, {0, 1}), {.class_weights = {1.0f, 2.0f}});
      },
      ThrowsMessage<ConfigError>(
          "cross_entropy: expected one class weight for each of 3 classes, found 2"));
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, IndexTensor({2}, {0, 1}), {.class_weights = {1.0f, -2.0f, 1.0f}});
      },
      ThrowsMessage<ConfigError>(
          "cross_entropy: class weight 1 must be a finite number of at least 0, found -2"));
}

TEST(BinaryCrossEntropyOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape : {Shape{1}, Shape{7, 5}, Shape{67, 3}, Shape{2, 3, 17}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      std::vector<float> values;
      for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(i % 3 == 0 ? 1.0f : 0.0f);
      const Tensor targets = Tensor::from(shape, values);
      test::check_derivatives({
          .shapes = {shape},
          .op = [&](const auto& in) { return binary_cross_entropy(in[0], targets); },
          .definition =
              [&](const auto& in) {
                test::Complex total = 0.0;
                for (size_t i = 0; i < values.size(); ++i) {
                  const test::Complex p = 1.0 / (1.0 + std::exp(-in[0][i]));
                  total -= std::log(values[i] == 1.0f ? p : 1.0 - p);
                }
                return ComplexArray{total / static_cast<double>(values.size())};
              },
          .spread = 2.0,
          .tolerance = 1e-6,
          .order = order,
      });
    }
  }
}

TEST(BinaryCrossEntropyOp, DerivativesWithPositiveWeightsAgreeWithTheDefinition) {
  const Shape shape{7, 3};
  const std::vector<float> weights{0.5f, 1.0f, 6.0f};
  const std::vector<float> values{1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0};
  const Tensor targets = Tensor::from(shape, values);
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    test::check_derivatives({
        .shapes = {shape},
        .op = [&](const auto& in) { return binary_cross_entropy(in[0], targets, weights); },
        .definition =
            [&](const auto& in) {
              test::Complex total = 0.0;
              for (size_t i = 0; i < values.size(); ++i) {
                const test::Complex p = 1.0 / (1.0 + std::exp(-in[0][i]));
                total -=
                    values[i] == 1.0f ? double{weights[i % 3]} * std::log(p) : std::log(1.0 - p);
              }
              return ComplexArray{total / static_cast<double>(values.size())};
            },
        .spread = 2.0,
        .tolerance = 1e-6,
        .order = order,
    });
  }
}

TEST(BinaryCrossEntropyOp, BadInputIsNamed) {
  EXPECT_THAT(
      [] {
        binary_cross_entropy(Tensor::zeros({2, 3}), Tensor::zeros({3}));
      },
      ThrowsMessage<ShapeError>(
          "binary_cross_entropy: logits and targets differ in shape: [2, 3] and [3]"));
  EXPECT_THAT([] { binary_cross_entropy(Tensor::zeros({0}), Tensor::zeros({0})); },
              ThrowsMessage<ShapeError>("binary_cross_entropy: needs at least one element, found "
                                        "[0]"));
  EXPECT_THAT(
      [] {
        binary_cross_entropy(Tensor::zeros({2, 2}),
                             Tensor::from({2, 2}, std::vector<float>{0, 1, 0, 2}));
      },
      ThrowsMessage<DataError>("binary_cross_entropy: target 1 of example 1 is 2, expected 0 or 1 "
                               "(or a probability between them)"));
  const auto weigh = [](const std::vector<float>& weights) {
    binary_cross_entropy(Tensor::zeros({2, 2}), Tensor::zeros({2, 2}), weights);
  };
  EXPECT_THAT([&] { weigh({1.0f}); },
              ThrowsMessage<ConfigError>("binary_cross_entropy: expected one weight of positive "
                                         "targets for each of 2 outputs, found 1"));
  EXPECT_THAT(
      [&] {
        weigh({1.0f, -1.0f});
      },
      ThrowsMessage<ConfigError>("binary_cross_entropy: the weight of a positive target "
                                 "must be a finite number of at least 0, found -1"));
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
}  // namespace lacuna::loss_test
