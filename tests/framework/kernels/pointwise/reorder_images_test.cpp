// Conversions between the storage orders of images against the tensor's own.
#include "lacuna/framework/kernels/pointwise/reorder_images.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "random_values.h"

namespace lacuna::reorder_images_test {
namespace {

constexpr Order kOrders[] = {Order::RowMajor, Order::BatchSlabs, Order::ImageSlabs,
                             Order::ChannelBlocks};

void check(const Shape& shape) {
  const Tensor images = random_tensor(shape, "images");
  for (const Order from : kOrders) {
    const Tensor stored = images.to(from);
    for (const Order order : kOrders) {
      const Tensor converted = reordered(stored, order), expected = images.to(order);
      ASSERT_EQ(converted.order(), order);
      ASSERT_EQ(converted.shape(), shape);
      ASSERT_TRUE(std::ranges::equal(converted.storage(), expected.storage()))
          << shape.to_string() << " from " << to_string(from) << " to " << to_string(order);
    }
  }
}

// In one thread, for so many small sizes would wait for threads longer than they are converted.
TEST(ReorderImages, AgreesWithTheTensorsOwnConversion) {
  const int before = num_threads();
  set_num_threads(1);
  for (const int64_t batch : {1, 15, 16, 17, 33}) {
    for (const int64_t channels : {1, 15, 17, 32}) {
      for (const auto& [height, width] : {std::pair{1, 1}, {5, 3}, {3, 17}}) {
        check({batch, channels, height, width});
      }
    }
  }
  set_num_threads(before);
}

TEST(ReorderImages, WidthsAroundAVector) {
  for (int64_t width = 1; width <= 19; ++width) check({18, 3, 2, width});
}

TEST(ReorderImages, NothingToConvert) {
  for (const Shape& shape : {Shape{0, 3, 4, 4}, Shape{3, 0, 4, 4}, Shape{3, 17, 0, 4}}) {
    check(shape);
  }
}

TEST(ReorderImages, IsTheTensorItselfInItsOwnOrder) {
  for (const Order order : kOrders) {
    const Tensor stored = random_tensor({2, 3, 4, 5}, "images").to(order);
    EXPECT_TRUE(reordered(stored, order).shares_storage_with(stored));
  }
}

// Kernels leave what they like in examples that are none.
TEST(ReorderImages, WhatStandsInPaddingStaysThere) {
  const Shape shape{17, 19, 3, 5};
  const Tensor images = random_tensor(shape, "images"), ones = Tensor::full(shape, 1.0f);
  for (const Order from : kOrders) {
    Tensor stored = images.to(from);
    const Tensor exists = ones.to(from);
    for (size_t i = 0; i < stored.storage().size(); ++i) {
      if (exists.storage()[i] == 0.0f) stored.mutable_storage()[i] = NAN;
    }
    for (const Order order : kOrders) {
      if (order == from) continue;
      const Tensor converted = reordered(stored, order), expected = images.to(order);
      EXPECT_TRUE(std::ranges::equal(converted.storage(), expected.storage()))
          << to_string(from) << " to " << to_string(order);
    }
  }
}

TEST(ReorderImages, AnyNumberOfThreads) {
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    check({35, 20, 7, 9});
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace lacuna::reorder_images_test
