#include "lacuna/framework/autograd/ops/arithmetic.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::arithmetic_test {
namespace {

using test::Complex;
using test::ComplexArray;
using testing::ThrowsMessage;

// Element `index` (row-major) of `wide`, read from an array of shape `shape`.
Complex broadcast_element(const ComplexArray& x, const Shape& shape, const Shape& wide,
                          int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int i = 1; i <= wide.rank(); ++i) {
    const int64_t position = index % wide[-i];
    index /= wide[-i];
    if (i > shape.rank()) continue;
    if (shape[-i] != 1) offset += position * stride;
    stride *= shape[-i];
  }
  return x[static_cast<size_t>(offset)];
}

template <class Combine>
void check_binary(Variable (*op)(const Variable&, const Variable&), Combine combine) {
  struct Shapes {
    Shape a, b, y;
  };
  for (const auto& [a, b, y] :
       {Shapes{{}, {}, {}}, Shapes{{7}, {7}, {7}}, Shapes{{3, 17}, {3, 17}, {3, 17}},
        Shapes{{9, 5}, {5}, {9, 5}}, Shapes{{5}, {9, 5}, {9, 5}}, Shapes{{4, 1}, {1, 3}, {4, 3}},
        Shapes{{2, 1, 5}, {3, 1}, {2, 3, 5}}, Shapes{{2, 3}, {}, {2, 3}},
        Shapes{{2, 3, 5}, {2, 1, 5}, {2, 3, 5}}, Shapes{{0, 3}, {3}, {0, 3}}}) {
    test::check_derivatives({
        .shapes = {a, b},
        .op = [&](const auto& in) { return op(in[0], in[1]); },
        .definition =
            [&, &left = a, &right = b, &wide = y](const auto& in) {
              ComplexArray out;
              for (int64_t i = 0; i < wide.numel(); ++i) {
                out.push_back(combine(broadcast_element(in[0], left, wide, i),
                                      broadcast_element(in[1], right, wide, i)));
              }
              return out;
            },
        .tolerance = 1e-6,
    });
  }
}

TEST(ArithmeticOps, DerivativesAgreeWithTheDefinitionForBroadcastShapes) {
  check_binary(add, [](Complex a, Complex b) { return a + b; });
  check_binary(subtract, [](Complex a, Complex b) { return a - b; });
  check_binary(multiply, [](Complex a, Complex b) { return a * b; });
}

TEST(ArithmeticOps, ScaleMultipliesAndNegates) {
  const Variable x = Variable::leaf(test::normal_tensor("x", {3, 5}));
  const Variable y = -scale(x, 2.5f);
  EXPECT_EQ(y.value().to_vector()[4], -2.5f * x.value().to_vector()[4]);
  backward(y, Tensor::full({3, 5}, 2.0f));
  EXPECT_EQ(x.gradient().to_vector(), std::vector<float>(15, -5.0f));
}

TEST(ArithmeticOps, OneInputTwiceGetsBothGradients) {
  const Variable x = Variable::leaf(Tensor::full({3}, 3.0f));
  backward(x * x, Tensor::full({3}, 1.0f));
  EXPECT_EQ(x.gradient().to_vector(), std::vector<float>(3, 6.0f));
}

TEST(ArithmeticOps, GiveTheSameNumbersInEitherOrder) {
  const Tensor a = test::normal_tensor("a", {67, 5}), b = test::normal_tensor("b", {67, 5});
  for (const auto op : {add, subtract, multiply}) {
    const Variable a1 = Variable::leaf(a), b1 = Variable::leaf(b);
    const Variable a2 = Variable::leaf(a.to(Order::BatchSlabs));
    const Variable b2 = Variable::leaf(b.to(Order::BatchSlabs));
    const Variable y1 = op(a1, b1), y2 = op(a2, b2), mixed = op(a2, b1);
    EXPECT_EQ(y2.value().order(), Order::BatchSlabs);
    EXPECT_EQ(y2.value().to_vector(), y1.value().to_vector());
    EXPECT_EQ(mixed.value().to_vector(), y1.value().to_vector());
    backward(y1, b);
    backward(y2, b.to(Order::BatchSlabs));
    EXPECT_EQ(a2.gradient().to_vector(), a1.gradient().to_vector());
    EXPECT_EQ(b2.gradient().to_vector(), b1.gradient().to_vector());
  }
}

TEST(ArithmeticOps, ShapesThatDoNotBroadcastAreNamed) {
  const Variable a = Tensor::zeros({2, 3}), b = Tensor::zeros({4});
  const std::string rest =
      ": shapes [2, 3] and [4] do not broadcast: dimensions must be equal or 1, counted from the "
      "last";
  EXPECT_THAT([&] { add(a, b); }, ThrowsMessage<ShapeError>("add" + rest));
  EXPECT_THAT([&] { subtract(a, b); }, ThrowsMessage<ShapeError>("subtract" + rest));
  EXPECT_THAT([&] { multiply(a, b); }, ThrowsMessage<ShapeError>("multiply" + rest));
}

}  // namespace
}  // namespace lacuna::arithmetic_test
