#include "lacuna/framework/autograd/ops/activation.h"

#include <gmock/gmock.h>

#include <limits>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/activation_reference.hpp"

namespace lacuna::activation_test {
namespace {

struct Op {
  Activation kind;
  Variable (*function)(const Variable&);
};

const Op kOps[] = {{Activation::ReLU, relu},
                   {Activation::GELU, gelu},
                   {Activation::GELUTanh, gelu_tanh},
                   {Activation::SiLU, silu},
                   {Activation::Sigmoid, sigmoid},
                   {Activation::Tanh, lacuna::tanh},
                   {Activation::SquaredReLU, squared_relu}};

TEST(ActivationOps, DerivativesAgreeWithTheDefinition) {
  for (const Op& op : kOps) {
    for (const Shape& shape : {Shape{}, Shape{1, 1}, Shape{7}, Shape{3, 5}, Shape{2, 17},
                               Shape{2, 3, 16}, Shape{67, 3}, Shape{0, 4}}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        test::check_derivatives({
            .shapes = {shape},
            .op = [&](const auto& in) { return op.function(in[0]); },
            .definition =
                [&](const auto& in) {
                  test::ComplexArray y;
                  for (const auto& x : in[0]) y.push_back(reference::activation(op.kind, x));
                  return y;
                },
            .spread = 1.3,
            .tolerance = 1e-6,
            .order = order,
        });
      }
    }
  }
}

TEST(ActivationOps, KeepTheStorageOrderAndGiveTheSameNumbersInEither) {
  const Tensor x = test::normal_tensor("x", {67, 9}), dy = test::normal_tensor("dy", {67, 9});
  for (const Op& op : kOps) {
    const Variable rows = Variable::leaf(x), slabs = Variable::leaf(x.to(Order::BatchSlabs));
    const Variable from_rows = op.function(rows), from_slabs = op.function(slabs);
    EXPECT_EQ(from_slabs.value().order(), Order::BatchSlabs);
    EXPECT_EQ(from_slabs.value().to_vector(), from_rows.value().to_vector());
    backward(from_rows, dy);
    backward(from_slabs, dy);  // the gradient may come in the other order
    EXPECT_EQ(slabs.gradient().to_vector(), rows.gradient().to_vector());
    for (const float value : from_slabs.value().storage()) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(LeakyReluOp, DerivativesAgreeWithTheDefinition) {
  for (const double slope : {0.0, 0.01, 0.3}) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 17}, Shape{2, 3, 16}, Shape{67, 3}}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        test::check_derivatives({
            .shapes = {shape},
            .op = [&](const auto& in) { return leaky_relu(in[0], static_cast<float>(slope)); },
            .definition =
                [&](const auto& in) {
                  test::ComplexArray y(in[0].size());
                  reference::leaky_relu(test::Complex(slope), in[0].data(), y.data(),
                                        shape.numel());
                  return y;
                },
            .tolerance = 1e-6,
            .order = order,
        });
      }
    }
  }
}

TEST(LeakyReluOp, RefusesSlopesThatCannotBeMeant) {
  for (const float slope : {-0.1f, INFINITY, NAN}) {
    EXPECT_THROW(leaky_relu(Tensor::zeros({2}), slope), ConfigError) << slope;
  }
  EXPECT_THAT([] { leaky_relu(Tensor::zeros({2}), -0.5f); },
              testing::ThrowsMessage<ConfigError>(
                  "leaky_relu: the slope must be a finite number of at least 0, found -0.5"));
}

TEST(ActivationOps, ReluPassesNanForwardAndSelectsBackward) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Variable x = Variable::leaf(Tensor::from({3}, std::vector<float>{nan, -1.0f, 1.0f}));
  const Variable y = relu(x);
  EXPECT_TRUE(std::isnan(y.value().to_vector()[0]));
  backward(y, Tensor::from({3}, std::vector<float>{2.0f, nan, 3.0f}));
  EXPECT_EQ(x.gradient().to_vector(), (std::vector<float>{2.0f, 0.0f, 3.0f}));
}

TEST(SwigluOp, DerivativesAgreeWithTheDefinition) {
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    test::check_derivatives({
        .shapes = {Shape{2, 35, 6}},
        .op = [](const auto& in) { return swiglu(in[0]); },
        .definition =
            [](const auto& in) {
              test::ComplexArray y;
              for (size_t row = 0; row < 70; ++row) {
                for (size_t i = 0; i < 3; ++i) {
                  const test::Complex gate = in[0][6 * row + i];
                  y.push_back(gate / (1.0 + std::exp(-gate)) * in[0][6 * row + 3 + i]);
                }
              }
              return y;
            },
        .tolerance = 2e-6,
        .order = order,
    });
  }
  EXPECT_THAT(
      [] {
        swiglu(Tensor::zeros({2, 3}));
      },
      testing::ThrowsMessage<ShapeError>("swiglu: needs [..., 2 features], found [2, 3]"));
}

}  // namespace
}  // namespace lacuna::activation_test
