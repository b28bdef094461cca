// The derivative check of an operation: its value and its gradients through the engine against a
// definition in double precision, differentiated by complex step.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/variable.h"

namespace lacuna::test {

using ComplexArray = std::vector<Complex>;

struct DerivativeCase {
  std::vector<Shape> shapes;  ///< of the inputs
  std::function<Variable(const std::vector<Variable>&)> op;
  /// The same function of the inputs' elements in row-major order.
  std::function<ComplexArray(const std::vector<ComplexArray>&)> definition;
  double spread = 1.0;            ///< of the inputs' normal values
  double tolerance = 1e-5;        ///< relative to the largest element, or to 1 if that is less
  Order order = Order::RowMajor;  ///< of the inputs with two dimensions or more
};

inline double largest_magnitude(const std::vector<double>& values) {
  double largest = 1.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

inline void expect_near(const std::vector<float>& found, const std::vector<double>& expected,
                        double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  const double bound = tolerance * largest_magnitude(expected);
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], bound) << what << " at " << i;
  }
}

inline void check_derivatives(const DerivativeCase& c) {
  std::vector<Variable> inputs;
  std::vector<ComplexArray> values;
  std::string text;
  for (size_t k = 0; k < c.shapes.size(); ++k) {
    const Tensor x = normal_tensor("input" + std::to_string(k), c.shapes[k], c.spread);
    inputs.push_back(Variable::leaf(c.shapes[k].rank() < 2 ? x : x.to(c.order)));
    values.push_back(convert<Complex>(x.to_vector()));
    text += c.shapes[k].to_string() + " ";
  }
  const Variable y = c.op(inputs);
  std::vector<double> expected;
  for (const Complex& value : c.definition(values)) expected.push_back(value.real());
  expect_near(y.value().to_vector(), expected, c.tolerance, text + "output");
  if (y.value().numel() == 0) return;

  const Tensor dy = normal_tensor("dy", y.shape());
  backward(y, dy.to(y.value().order()));
  const std::vector<double> weights = convert<double>(dy.to_vector());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const auto moved = [&](const ComplexArray& x) {
      std::vector<ComplexArray> all = values;
      all[k] = x;
      return c.definition(all);
    };
    expect_near(inputs[k].gradient().to_vector(), complex_step(moved, values[k], weights),
                c.tolerance, text + "gradient " + std::to_string(k));
    EXPECT_EQ(inputs[k].gradient().shape(), c.shapes[k]);
  }
}

}  // namespace lacuna::test
