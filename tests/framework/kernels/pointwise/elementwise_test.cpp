#include "lacuna/framework/kernels/pointwise/elementwise.hpp"

#include <gmock/gmock.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/pointwise/elementwise_reference.hpp"

namespace lacuna::elementwise_test {
namespace {

using test::largest_error;
using test::normal_values;
using testing::ThrowsMessage;

std::vector<float> expected(Arithmetic operation, float factor, const std::vector<float>& a,
                            const std::vector<float>& b) {
  std::vector<float> y(a.size());
  reference::arithmetic(operation, factor, a.data(), b.data(), y.data(),
                        static_cast<int64_t>(a.size()));
  return y;
}

TEST(Elementwise, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    const auto a = normal_values("a", n), b = normal_values("b", n);
    std::vector<float> y(a.size());
    add(a, b, y);
    EXPECT_EQ(y, expected(Arithmetic::Add, 1.0f, a, b)) << n;
    subtract(a, b, y);
    EXPECT_EQ(y, expected(Arithmetic::Subtract, 1.0f, a, b)) << n;
    multiply(a, b, y);
    EXPECT_EQ(y, expected(Arithmetic::Multiply, 1.0f, a, b)) << n;
    scale(0.3f, a, y);
    EXPECT_EQ(y, expected(Arithmetic::Scale, 0.3f, a, a)) << n;
    y = b;
    accumulate(a, y);
    EXPECT_EQ(y, expected(Arithmetic::Add, 1.0f, a, b)) << n;
    y = b;
    move_towards(0.3f, a, y);  // fused here, and rounded twice there
    EXPECT_LE(largest_error(y, expected(Arithmetic::Approach, 0.3f, a, b)), 3e-7) << n;
  }
}

TEST(Elementwise, MovingTowardsTheSameChangesNothing) {
  const auto a = normal_values("a", 37);
  std::vector<float> y = a;
  y[5] = 0.0f;
  std::vector<float> x = y;
  move_towards(0.001f, x, y);
  EXPECT_EQ(y, x);
  move_towards(1.0f, a, y);
  EXPECT_EQ(y, a);
}

TEST(Elementwise, SeveralBlocksGiveTheSameForAnyNumberOfThreads) {
  const int before = num_threads();
  const auto a = normal_values("a", 50001), b = normal_values("b", 50001);
  std::vector<float> one(a.size()), three(a.size());
  set_num_threads(1);
  add(a, b, one);
  set_num_threads(3);
  add(a, b, three);
  set_num_threads(before);
  EXPECT_EQ(one, three);
  EXPECT_EQ(one, expected(Arithmetic::Add, 1.0f, a, b));
}

TEST(Elementwise, DifferentLengthsAreAnError) {
  const std::vector<float> a(3), b(4);
  std::vector<float> y(3);
  EXPECT_THAT([&] { add(a, b, y); },
              ThrowsMessage<ShapeError>("elementwise arithmetic on arrays of 3, 4 and 3 elements"));
}

}  // namespace
}  // namespace lacuna::elementwise_test
