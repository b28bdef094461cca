#include "lacuna/framework/autograd/ops/concatenate.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::concatenate_test {
namespace {

using test::ComplexArray;

// Index by index: the element of the joined array that has `outer` and `inner` around position i.
ComplexArray joined(const std::vector<ComplexArray>& inputs, const std::vector<Shape>& shapes,
                    int dimension) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < dimension; ++i) outer *= shapes[0][i];
  for (int i = dimension + 1; i < shapes[0].rank(); ++i) inner *= shapes[0][i];
  ComplexArray all;
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int64_t size = shapes[k][dimension];
      for (int64_t i = 0; i < size; ++i) {
        for (int64_t n = 0; n < inner; ++n) {
          all.push_back(inputs[k][static_cast<size_t>((o * size + i) * inner + n)]);
        }
      }
    }
  }
  return all;
}

void check(const std::vector<Shape>& shapes, int dimension, Order order = Order::RowMajor) {
  const int index = dimension < 0 ? dimension + shapes[0].rank() : dimension;
  test::check_derivatives(
      {.shapes = shapes,
       .op = [=](const auto& inputs) { return concatenate(inputs, dimension); },
       .definition = [=](const auto& inputs) { return joined(inputs, shapes, index); },
       .tolerance = 1e-6,
       .order = order});
}

TEST(ConcatenateOp, DerivativesAgreeWithTheDefinition) {
  check({{4}}, 0);
  check({{4}, {3}}, 0);
  check({{5, 3}, {5, 1}, {5, 7}}, -1);
  check({{5, 3}, {2, 3}}, 0);
  check({{3, 2, 5}, {3, 4, 5}}, 1);
  check({{3, 2, 4, 5}, {3, 1, 4, 5}}, -3);
  check({{5, 3}, {5, 0}}, 1);
  check({{0, 3}, {0, 2}}, 1);
  check({{70, 3}, {70, 2}}, 1, Order::BatchSlabs);
  check({{2, 35, 3}, {2, 35, 2}}, -1, Order::BatchSlabs);
  check({{2, 35, 3}, {2, 4, 3}}, 1, Order::BatchSlabs);
}

TEST(ConcatenateOp, SlabsSideBySideStaySlabs) {
  const Tensor a = test::normal_tensor("a", {70, 3}), b = test::normal_tensor("b", {70, 2});
  const Order order = Order::BatchSlabs;
  const std::vector<Variable> slabs{a.to(order), b.to(order)}, rows{a, b}, mixed{a, b.to(order)};
  const Tensor y = concatenate(slabs, 1).value();
  EXPECT_EQ(y.order(), order);
  EXPECT_EQ(y.to_vector(), concatenate(rows, 1).value().to_vector());
  EXPECT_EQ(concatenate(mixed, 1).value().order(), Order::RowMajor);
  EXPECT_EQ(concatenate(mixed, 1).value().to_vector(), y.to_vector());
}

TEST(ConcatenateOp, GivesGradientsToThoseThatNeedThem) {
  const Variable a = Variable::leaf(Tensor::full({2, 1}, 1.0f));
  const Variable constant(Tensor::full({2, 2}, 5.0f));
  const Variable y = concatenate(std::vector<Variable>{constant, a, a}, 1);
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{5, 5, 1, 1, 5, 5, 1, 1}));
  backward(y, Tensor::from({2, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(a.gradient().to_vector(), (std::vector<float>{7, 15}));
}

TEST(ConcatenateOp, RefusesWhatDoesNotFit) {
  const auto refuses = [](const std::vector<Shape>& shapes, int dimension,
                          const std::string& words) {
    std::vector<Variable> inputs;
    for (const Shape& shape : shapes) inputs.emplace_back(Tensor::zeros(shape));
    expect_throws<ShapeError>([&] { concatenate(inputs, dimension); }, words);
  };
  refuses({}, 0, "concatenate: needs at least one input");
  refuses({{2, 3}, {3, 3}}, 1,
          "concatenate: shapes [2, 3] and [3, 3] differ in a dimension other than 1");
  refuses({{2, 3}, {2}}, 1,
          "concatenate: shapes [2, 3] and [2] differ in a dimension other than 1");
  refuses({{2, 3}}, 2, "concatenate: there is no dimension 2 in shape [2, 3]");
  refuses({{2, 3}}, -3, "concatenate: there is no dimension -3 in shape [2, 3]");
  refuses({{}}, 0, "concatenate: there is no dimension 0 in shape []");
}

}  // namespace
}  // namespace lacuna::concatenate_test
