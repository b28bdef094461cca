#include "lacuna/framework/core/tensor.h"

#include <gmock/gmock.h>

#include <numeric>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::tensor_test {
namespace {

using testing::Each;
using testing::ElementsAre;

Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::from(shape, values);
}

TEST(Tensor, IsMadeFilled) {
  EXPECT_THAT(Tensor::zeros({2, 3}).to_vector(), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Tensor::full({3}, 2.5f).to_vector(), Each(2.5f));
  EXPECT_EQ(Tensor::scalar(-1.5f).item(), -1.5f);
  EXPECT_EQ(Tensor::zeros({0, 3}).numel(), 0);
  EXPECT_TRUE(Tensor::zeros({0, 3}).defined());
  EXPECT_THAT(Tensor::zeros({0, 3}).to_vector(), testing::IsEmpty());
}

TEST(Tensor, StorageIsAlignedToACacheLine) {
  for (const int64_t size : {1, 3, 17, 64}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Tensor::zeros({size}).data()) % Buffer::kAlignment, 0u);
  }
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor a = counting({4});
  EXPECT_TRUE(a.unique());
  const Tensor shared = a, copy = a.clone();
  EXPECT_FALSE(a.unique());
  EXPECT_TRUE(a.shares_storage_with(shared));
  a.mutable_data()[0] = 9.0f;
  EXPECT_EQ(shared.data()[0], 9.0f);
  EXPECT_EQ(copy.data()[0], 1.0f);
  EXPECT_FALSE(Tensor().clone().defined());
}

// The most elements that a shape has come to 2^64 bytes, which is none in 64 bits.
TEST(Tensor, OfMoreBytesThan64BitsIsABadAlloc) {
  EXPECT_THROW(Tensor::empty(Shape{int64_t{1} << 62}), std::bad_alloc);
}

TEST(Tensor, BatchSlabsRoundTripAndPadWithZeros) {
  for (const int64_t batch : {0, 1, 63, 64, 65, 130}) {
    for (const int64_t features : {1, 3, 7}) {
      const Tensor rows = counting({batch, features});
      const Tensor slabs = rows.to(Order::BatchSlabs);
      EXPECT_EQ(slabs.shape(), rows.shape());
      EXPECT_EQ(slabs.storage_size(), (batch + 63) / 64 * 64 * features);
      EXPECT_EQ(slabs.to_vector(), rows.to_vector());
      const std::span<const float> stored = slabs.storage();
      EXPECT_EQ(std::accumulate(stored.begin(), stored.end(), 0.0),
                static_cast<double>(batch * features * (batch * features + 1) / 2));
    }
  }
}

TEST(Tensor, SlabsHoldExamplesOfAFeatureSideBySide) {
  const Tensor slabs = counting({2, 2, 3}).to(Order::BatchSlabs);
  const float* data = slabs.data(Order::BatchSlabs);
  EXPECT_EQ(data[1], 4.0f);   // example 1, feature 0
  EXPECT_EQ(data[64], 2.0f);  // example 0, feature 1
}

TEST(Tensor, ReshapeKeepsTheRowMajorElements) {
  const Tensor a = counting({2, 3});
  const Tensor view = a.reshape({3, 2});
  EXPECT_TRUE(view.shares_storage_with(a));
  EXPECT_EQ(view.shape(), (Shape{3, 2}));
  const Tensor from_slabs = a.to(Order::BatchSlabs).reshape({6});
  EXPECT_EQ(from_slabs.order(), Order::RowMajor);
  EXPECT_EQ(from_slabs.to_vector(), a.to_vector());
}

TEST(Tensor, MessagesSayWhatDoesNotFit) {
  const std::vector<float> three(3);
  expect_throws<ShapeError>(
      [&] {
        Tensor::from({2, 2}, three);
      },
      "a tensor of shape [2, 2] has 4 elements, found 3 values");
  expect_throws<ShapeError>(
      [] {
        counting({2, 3}).reshape({4});
      },
      "reshape: [2, 3] has 6 elements, [4] has 4");
  expect_throws<ShapeError>([] { counting({2}).item(); },
                            "item() needs exactly one element, the shape is [2]");
  expect_throws<StateError>([] { Tensor().data(); }, "an undefined tensor has no data");
  expect_throws<StateError>([] { counting({2}).data(Order::BatchSlabs); },
                            "a tensor of shape [2] is stored in row-major, but its data was "
                            "requested in batch slabs; convert it with to()");
}

TEST(Tensor, AllocationsAreCounted) {
  const int64_t before = memory_stats().current;
  {
    reset_memory_peak();
    const Tensor a = Tensor::empty({1000});
    EXPECT_EQ(memory_stats().current, before + 4032);  // 4000 bytes, padded to 64
    EXPECT_EQ(memory_stats().largest, 4032);
    EXPECT_EQ(memory_stats().peak, before + 4032);
  }
  EXPECT_EQ(memory_stats().current, before);
  EXPECT_EQ(memory_stats().peak, before + 4032);
}

TEST(IndexTensor, HoldsAsManyValuesAsItsShape) {
  const IndexTensor labels({3}, {2, 0, 1});
  EXPECT_THAT(labels.values(), ElementsAre(2, 0, 1));
  EXPECT_EQ(labels.numel(), 3);
  expect_throws<ShapeError>([] { IndexTensor({2}, {1}); },
                            "an index tensor of shape [2] needs 2 values, found 1");
  expect_throws<StateError>([] { IndexTensor().values(); }, "undefined index tensor");
}

TEST(Tensor, PaddingBeyondWhatMemoryCanHoldIsRefused) {
  const auto of = [](int bits) { return int64_t{1} << bits; };
  for (const Order order :
       {Order::RowMajor, Order::BatchSlabs, Order::ImageSlabs, Order::ChannelBlocks}) {
    for (const Shape& shape :
         {Shape{1, of(60)}, Shape{1, of(58), 1}, Shape{of(58), 1, 1}, Shape{1, 1, of(60)},
          Shape{1, 1, of(30), of(30)}, Shape{1, of(60), 1, 1}, Shape{of(60), 1, 1, 1},
          Shape{1, 1, of(62) - 1, 1}, Shape{1, 1, 1, of(62) - 1}}) {
      const bool is_of_images = order == Order::ImageSlabs || order == Order::ChannelBlocks;
      if (is_of_images && shape.rank() < 3) continue;
      EXPECT_THROW(Tensor::empty(shape, order), std::bad_alloc)
          << to_string(order) << " " << shape.to_string();
    }
  }
  EXPECT_EQ(Tensor::empty(Shape{0, of(60)}, Order::BatchSlabs).storage_size(), 0);
}

}  // namespace
}  // namespace lacuna::tensor_test
