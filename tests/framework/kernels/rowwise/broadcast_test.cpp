#include "lacuna/framework/kernels/rowwise/broadcast.hpp"

#include <gmock/gmock.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::broadcast_test {
namespace {

using test::normal_tensor;
using testing::ThrowsMessage;

TEST(BroadcastShape, FollowsNumPy) {
  EXPECT_EQ(broadcast_shape("add", {9, 20}, {20}), (Shape{9, 20}));
  EXPECT_EQ(broadcast_shape("add", {3, 1, 5}, {4, 1}), (Shape{3, 4, 5}));
  EXPECT_EQ(broadcast_shape("add", {}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shape("add", {1}, {0}), (Shape{0}));
  EXPECT_THAT(
      [] {
        broadcast_shape("add", {2, 3}, {2});
      },
      ThrowsMessage<ShapeError>("add: shapes [2, 3] and [2] do not broadcast: dimensions "
                                "must be equal or 1, counted from the last"));
}

TEST(BroadcastTo, RepeatsAndSumToAddsUp) {
  const Tensor x = Tensor::from({2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Tensor wide = broadcast_to(x, {2, 2, 2, 3});
  const std::vector<float> half{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6};
  std::vector<float> both = half;
  both.insert(both.end(), half.begin(), half.end());
  EXPECT_EQ(wide.to_vector(), both);
  EXPECT_EQ(sum_to(wide, {2, 1, 3}).to_vector(), (std::vector<float>{4, 8, 12, 16, 20, 24}));

  const Tensor column = Tensor::from({2, 1}, std::vector<float>{7, 8});
  EXPECT_EQ(broadcast_to(column, {2, 3}).to_vector(), (std::vector<float>{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(sum_to(broadcast_to(column, {2, 3}), {2, 1}).to_vector(), (std::vector<float>{21, 24}));
}

// For all pairs of shapes, Σ broadcast(x) · y = Σ x · sum_to(y): each is the other's transpose.
TEST(BroadcastTo, IsTheTransposeOfSumTo) {
  const Shape wide{3, 4, 5};
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{4, 5}, Shape{4, 1}, Shape{1, 5},
                             Shape{3, 1, 5}, Shape{3, 1, 1}, Shape{1, 4, 1}, Shape{3, 4, 5}}) {
    const Tensor x = normal_tensor("x", shape), y = normal_tensor("y", wide);
    const auto stretched = broadcast_to(x, wide).to_vector(), values = y.to_vector();
    const auto own = x.to_vector(), summed = sum_to(y, shape).to_vector();
    double left = 0.0, right = 0.0;
    for (size_t i = 0; i < values.size(); ++i) left += stretched[i] * values[i];
    for (size_t i = 0; i < own.size(); ++i) right += own[i] * summed[i];
    EXPECT_NEAR(left, right, 1e-4) << shape.to_string();
  }
}

TEST(BroadcastTo, TakesEitherStorageOrderAndEmptyDimensions) {
  const Tensor x = normal_tensor("x", {2, 1, 3});
  EXPECT_EQ(broadcast_to(x.to(Order::BatchSlabs), {2, 2, 3}).to_vector(),
            broadcast_to(x, {2, 2, 3}).to_vector());
  const Tensor y = normal_tensor("y", {2, 4, 3});
  EXPECT_EQ(sum_to(y.to(Order::BatchSlabs), {2, 1, 3}).to_vector(),
            sum_to(y, {2, 1, 3}).to_vector());
  EXPECT_EQ(broadcast_to(normal_tensor("x", {1, 3}), {0, 3}).numel(), 0);
  EXPECT_EQ(sum_to(Tensor::zeros({0, 3}), {1, 3}).to_vector(), std::vector<float>(3, 0.0f));
  EXPECT_EQ(sum_to(Tensor::zeros({3, 0}), {3, 1}).to_vector(), std::vector<float>(3, 0.0f));
}

}  // namespace
}  // namespace lacuna::broadcast_test
