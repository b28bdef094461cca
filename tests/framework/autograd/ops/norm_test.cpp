#include "lacuna/framework/autograd/ops/norm.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/rowwise/group_norm_reference.hpp"
#include "lacuna/framework/kernels/rowwise/norm_reference.hpp"
#include "lacuna/framework/kernels/rowwise/rms_norm_reference.hpp"

namespace lacuna::norm_test {
namespace {

using testing::ThrowsMessage;

TEST(LayerNormOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape :
       {Shape{3, 1}, Shape{7, 5}, Shape{9, 20}, Shape{2, 3, 17}, Shape{67, 3}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      const int64_t n = shape.features(), rows = shape.batch();
      test::check_derivatives({
          .shapes = {shape, Shape{n}, Shape{n}},
          .op = [](const auto& in) { return layer_norm(in[0], in[1], in[2], {.eps = 0.1}); },
          .definition =
              [&](const auto& in) {
                test::ComplexArray y(in[0].size()), mean(in[0].size()), deviation(in[0].size());
                reference::layer_norm(NormShape{rows, n}, 0.1, in[0].data(), in[1].data(),
                                      in[2].data(), y.data(), mean.data(), deviation.data());
                return y;
              },
          .tolerance = 2e-6,
          .order = order,
      });
    }
  }
}

TEST(LayerNormOp, ShapesThatDoNotFitAreNamed) {
  EXPECT_THAT(
      [] {
        layer_norm(Tensor::zeros({2, 5}), Tensor::zeros({4}), Tensor::zeros({5}));
      },
      ThrowsMessage<ShapeError>("layer_norm: x [2, 5] needs a weight and a bias of shape [5], "
                                "found [4] and [5]"));
}

TEST(RmsNormOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape :
       {Shape{3, 1}, Shape{7, 5}, Shape{9, 20}, Shape{2, 3, 17}, Shape{67, 3}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      const int64_t n = shape.features(), rows = shape.batch();
      test::check_derivatives({
          .shapes = {shape, Shape{n}},
          .op = [](const auto& in) { return rms_norm(in[0], in[1], {.eps = 0.1}); },
          .definition =
              [&](const auto& in) {
                test::ComplexArray y(in[0].size()), root(in[0].size());
                reference::rms_norm(NormShape{rows, n}, 0.1, in[0].data(), in[1].data(), y.data(),
                                    root.data());
                return y;
              },
          .tolerance = 2e-6,
          .order = order,
      });
    }
  }
}

// In slabs the whole computation runs across the examples, and its results are in slabs. The
// reference kernels know rows alone; each machine runs this test with them, too
// (reference.autograd).
TEST(NormOps, SlabsOfTheBatchStaySlabs) {
  const Order order = use_reference_kernels() ? Order::RowMajor : Order::BatchSlabs;
  const Variable x = Variable::leaf(test::normal_tensor("x", {2, 40, 6}).to(Order::BatchSlabs));
  const Tensor weight = Tensor::full({6}, 1.0f);
  EXPECT_EQ(rms_norm(x, weight).value().order(), order);
  const Variable y = layer_norm(x, weight, Tensor::zeros({6}));
  EXPECT_EQ(y.value().order(), order);
  backward(y, y.value());
  EXPECT_EQ(x.gradient().order(), order);
}

TEST(RmsNormOp, ShapesThatDoNotFitAreNamed) {
  EXPECT_THAT(
      [] {
        rms_norm(Tensor::zeros({2, 5}), Tensor::zeros({4}));
      },
      ThrowsMessage<ShapeError>("rms_norm: x [2, 5] needs a weight of shape [5], found [4]"));
}

TEST(GroupNormOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 4, 5}, Shape{5, 6, 2, 3}, Shape{67, 2, 3}}) {
    for (const int64_t groups : {1, 2}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        const int64_t channels = shape[1];
        const GroupNormShape problem{shape[0], channels, groups,
                                     shape.numel() / (shape[0] * channels)};
        test::check_derivatives({
            .shapes = {shape, Shape{channels}, Shape{channels}},
            .op =
                [&](const auto& in) {
                  return group_norm(in[0], in[1], in[2], {.groups = groups, .eps = 0.1});
                },
            .definition =
                [&](const auto& in) {
                  test::ComplexArray y(in[0].size()), mean(in[0].size()), deviation(in[0].size());
                  reference::group_norm(problem, 0.1, in[0].data(), in[1].data(), in[2].data(),
                                        y.data(), mean.data(), deviation.data());
                  return y;
                },
            .tolerance = 2e-6,
            .order = order,
        });
      }
    }
  }
}

// torch.nn.functional.group_norm(torch.arange(8.).reshape(1, 4, 2), 2, weight, bias) with weight
// 1, 2, 3, 4 and bias 0, 0, 1, 1: each group is 0 to 3 but for its mean, of deviation √1.25.
TEST(GroupNormOp, GivesTheNumbersOfPyTorch) {
  std::vector<float> x(8);
  for (size_t i = 0; i < 8; ++i) x[i] = static_cast<float>(i);
  const Variable y =
      group_norm(Tensor::from({1, 4, 2}, x), Tensor::from({4}, std::vector<float>{1, 2, 3, 4}),
                 Tensor::from({4}, std::vector<float>{0, 0, 1, 1}), {.groups = 2});
  const double unit = 1.0 / std::sqrt(1.25 + 1e-5);
  const std::vector<double> expected{-1.5 * unit,      -0.5 * unit,      1.0 * unit,
                                     3.0 * unit,       1.0 - 4.5 * unit, 1.0 - 1.5 * unit,
                                     1.0 + 2.0 * unit, 1.0 + 6.0 * unit};
  EXPECT_LE(test::largest_error(y.value().to_vector(), expected), 1e-6);
}

TEST(GroupNormOp, TakesAnEmptyBatch) {
  const Variable y =
      group_norm(Tensor::zeros({0, 4, 3}), Tensor::zeros({4}), Tensor::zeros({4}), {.groups = 2});
  EXPECT_EQ(y.shape(), (Shape{0, 4, 3}));
}

TEST(GroupNormOp, ShapesThatDoNotFitAreNamed) {
  EXPECT_THAT(
      [] {
        group_norm(Tensor::zeros({2, 5, 3}), Tensor::zeros({4}), Tensor::zeros({5}));
      },
      ThrowsMessage<ShapeError>("group_norm: needs x [batch, channels, ...], a weight and a bias "
                                "[channels], found [2, 5, 3], [4] and [5]"));
  EXPECT_THAT(
      [] {
        group_norm(Tensor::zeros({2, 5, 3}), Tensor::zeros({5}), Tensor::zeros({5}), {.groups = 2});
      },
      ThrowsMessage<ShapeError>(
          "group_norm: x [2, 5, 3] has 5 channels, which 2 groups do not divide"));
}

}  // namespace
}  // namespace lacuna::norm_test
