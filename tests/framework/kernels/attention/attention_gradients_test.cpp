// Gradients of attention against the complex step and finite differences of its definition.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/kernels/attention/attention_cases.h"

namespace lacuna::attention_gradients_test {
namespace {

using test::attention_by_definition;
using test::Complex;
using test::convert;
using test::normal_values;
using test::padding_mask;
using test::relative_error;
using test::run_attention;
using Case = test::AttentionCase;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// By the complex step through the definition, which is exact to rounding.
TEST(Attention, ReferenceGradientAgreesWithTheComplexStep) {
  for (const bool causal : {false, true}) {
    Case c{.batch = 1, .length = 5, .heads = 2, .kv_heads = 1, .d = 3, .causal = causal};
    c.mask = {1, 1, 0, 1, 1};
    c.dropout = 0.4;
    const auto values = normal_values("qkv", c.qkv_shape().numel());
    const auto dy = convert<double>(normal_values("dy", 5 * 6));
    const auto gradient = attention_by_definition<double>(c, convert<double>(values), dy).dqkv;
    const auto forward = [&](const std::vector<Complex>& qkv) {
      return attention_by_definition<Complex>(c, qkv, {}).y;
    };
    const auto expected = test::complex_step(forward, convert<Complex>(values), dy);
    EXPECT_LE(relative_error(gradient, expected), 1e-7) << c.text();
  }
}

// Of y · dy along directions of qkv, in double precision: central differences of the definition
// against the gradient that the kernel gives, and against the definition's own.
void expect_finite_differences(const Case& c) {
  const Shape shape = c.qkv_shape();
  const auto qkv = convert<double>(normal_values("qkv", shape.numel()));
  const auto dy = convert<double>(normal_values("dy", c.batch * c.length * c.heads * c.d));
  const auto found = run_attention(c, Order::RowMajor).dqkv;
  const auto exact = attention_by_definition<double>(c, qkv, dy).dqkv;
  const auto along = [&](const std::vector<double>& direction, double step) {
    std::vector<double> moved = qkv;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
    return dot(attention_by_definition<double>(c, moved, {}).y, dy);
  };
  for (const char* name : {"queries", "keys", "values", "all"}) {
    // Of unit length, so that a step of 1e-4 leaves an error of some 1e-8.
    std::vector<double> direction = convert<double>(normal_values(name, shape.numel()));
    const std::string part(name);
    for (size_t i = 0; i < direction.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % shape[2];
      const char* of = column < c.heads * c.d                  ? "queries"
                       : column < (c.heads + c.kv_heads) * c.d ? "keys"
                                                               : "values";
      if (part != "all" && part != of) direction[i] = 0.0;
    }
    const double length = std::sqrt(dot(direction, direction));
    for (double& value : direction) value /= length;
    const double difference = (along(direction, 1e-4) - along(direction, -1e-4)) / 2e-4;
    const double scale = std::sqrt(dot(exact, exact));
    EXPECT_NEAR(dot(exact, direction), difference, 1e-7 * scale) << c.text() << ", " << name;
    EXPECT_NEAR(dot(convert<double>(found), direction), difference, 1e-5 * scale)
        << c.text() << ", " << name;
  }
}

TEST(Attention, GradientsAgreeWithFiniteDifferences) {
  for (const int64_t length : {1, 7, 64, 1000}) {
    const Case plain{.batch = length == 1000 ? 1 : 2, .length = length, .heads = 2, .d = 5};
    expect_finite_differences(plain);
    Case causal = plain;
    causal.causal = true;
    expect_finite_differences(causal);
    Case padded = causal;
    padded.mask = padding_mask(plain.batch, length, length / 3);
    expect_finite_differences(padded);
    Case one_key = plain;
    one_key.mask.assign(static_cast<size_t>(plain.batch * length), 0);
    for (int64_t b = 0; b < plain.batch; ++b) {
      one_key.mask[static_cast<size_t>(b * length + length / 2)] = 1;
    }
    expect_finite_differences(one_key);
  }
}

}  // namespace
}  // namespace lacuna::attention_gradients_test
