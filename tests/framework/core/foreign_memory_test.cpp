#include "lacuna/framework/core/foreign_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace lacuna::foreign_memory_test {
namespace {

struct alignas(4096) Page {
  std::array<float, 1024> values{};
};

TEST(ForeignMemory, IsSharedUntilTheLastTensorOverItIsGone) {
  auto page = std::make_shared<Page>();
  const std::weak_ptr<const void> alive = page;
  float* begin = page->values.data() + 1;
  const int64_t held = memory_stats().current;
  Tensor tensor = tensor_over(Shape{2, 3}, begin, page);
  const Tensor second = tensor_over(Shape{3}, begin, page);
  begin[5] = 7.0f;
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(tensor.data(), begin);
  EXPECT_EQ(second.data(), begin);
  EXPECT_EQ(tensor.data()[5], 7.0f);
  EXPECT_EQ(memory_stats().current, held);
#endif
  page.reset();
  const Tensor copy = tensor.clone();
  EXPECT_NE(copy.data(), tensor.data());
  tensor = second;
  EXPECT_EQ(second.data()[0], 0.0f);
  tensor = copy;
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_FALSE(alive.expired());
#endif
}

TEST(ForeignMemory, IsLetGoWithTheTensor) {
  auto page = std::make_shared<Page>();
  const std::weak_ptr<const void> alive = page;
  float* begin = page->values.data();
  Tensor tensor = tensor_over(Shape{4}, begin, std::move(page));
  tensor = Tensor();
  EXPECT_TRUE(alive.expired());
  EXPECT_NE(Tensor::empty(Shape{4}).data(), begin);
}

TEST(ForeignMemory, AtTheEndOfAPageIsCopied) {
  // Kernels may read the 16 bytes behind a tensor.
  const auto page = std::make_shared<Page>();
  float* end = page->values.data() + 1024;
  for (const int distance : {0, 1, 3}) {
    EXPECT_NE(tensor_over(Shape{8}, end - distance - 8, page).data(), end - distance - 8);
  }
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(tensor_over(Shape{8}, end - 12, page).data(), end - 12);
#endif
  EXPECT_EQ(tensor_over(Shape{0, 3}, end, page).numel(), 0);
}

}  // namespace
}  // namespace lacuna::foreign_memory_test
