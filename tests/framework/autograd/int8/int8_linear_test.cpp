#include "lacuna/framework/autograd/int8/int8_linear.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/positions.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::int8_linear_test {
namespace {

std::shared_ptr<Int8Linear> layer_of(int64_t out, int64_t in, const std::string& name,
                                     std::optional<Int8Grid> input) {
  auto layer = std::make_shared<Int8Linear>();
  layer->name = name;
  const Positions all = Positions::all(Shape{out, in});
  std::vector<int8_t> values;
  for (const float v : random_values(out * in, name)) {
    values.push_back(static_cast<int8_t>(127.0f * v));
  }
  layer->weight = int8_matrix(out, in, all.row_begin(), all.column(), values);
  for (const float v : random_values(out, name + "/scales")) {
    layer->weight_scales.push_back((1.1f + v) / 500.0f);
  }
  layer->bias = random_values(out, name + "/bias");
  layer->input = input;
  return layer;
}

/// The value as a constant, so that nothing is fused with what made it.
Variable settled(const Variable& x) { return Variable(x.value()); }

class Int8LinearTest : public testing::Test {
 protected:
  const NoGrad no_grad_;
  const Variable x_ = random_tensor(Shape{70, 9}, "x");
  const std::shared_ptr<Int8Linear> first_ =
      layer_of(14, 9, "first", Int8Grid{.scale = 1.0f / 127.0f, .zero = 128});
  const std::shared_ptr<Int8Linear> second_ =
      layer_of(5, 14, "second", Int8Grid{.scale = 0.02f, .zero = 3});
};

TEST_F(Int8LinearTest, FusesWhatFollowsToTheSameBits) {
  const Variable fused = int8_linear(relu(int8_linear(x_, first_)), second_);
  const Variable apart = int8_linear(settled(relu(settled(int8_linear(x_, first_)))), second_);
  EXPECT_EQ(fused.value().to_vector(), apart.value().to_vector());
}

TEST_F(Int8LinearTest, AddsAResidualBehindTheActivation) {
  const Variable shortcut = random_tensor(Shape{70, 14}, "shortcut");
  for (const bool product_first : {true, false}) {
    const Variable product = relu(int8_linear(x_, first_));
    const Variable sum = product_first ? add(product, shortcut) : add(shortcut, product);
    EXPECT_NE(sum.deferred_value(), nullptr);
    const Variable apart = add(settled(relu(settled(int8_linear(x_, first_)))), shortcut);
    EXPECT_EQ(sum.value().to_vector(), apart.value().to_vector());
    // An activation of the sum comes after it.
    EXPECT_EQ(relu(sum).value().to_vector(), relu(apart).value().to_vector());
  }
}

TEST_F(Int8LinearTest, AddsAProductToItself) {
  const Variable product = int8_linear(x_, first_);
  const std::vector<float> once = int8_linear(x_, first_).value().to_vector();
  const std::vector<float> twice = add(product, product).value().to_vector();
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], once[i] + once[i]);
}

TEST_F(Int8LinearTest, ServesSeveralReaders) {
  const Variable hidden = relu(int8_linear(x_, first_));
  const std::vector<float> y = int8_linear(hidden, second_).value().to_vector();
  EXPECT_EQ(int8_linear(hidden, second_).value().to_vector(), y);
  EXPECT_EQ(int8_linear(settled(hidden), second_).value().to_vector(), y);
}

TEST_F(Int8LinearTest, IsNearTheFloatProduct) {
  for (const bool is_static : {true, false}) {
    if (!is_static) first_->input.reset();
    const std::vector<float> y = int8_linear(x_, first_).value().to_vector();
    const std::vector<float> weights = random_values(14 * 9, "first");
    for (size_t b = 0; b < 70; ++b) {
      for (size_t row = 0; row < 14; ++row) {
        double sum = first_->bias[row];
        for (size_t i = 0; i < 9; ++i) {
          const auto w = static_cast<int8_t>(127.0f * weights[row * 9 + i]);
          sum += static_cast<double>(w) * first_->weight_scales[row] *
                 static_cast<double>(x_.value().data()[b * 9 + i]);
        }
        EXPECT_NEAR(y[b * 14 + row], sum, 0.015);
      }
    }
  }
}

TEST_F(Int8LinearTest, KeepsLeadingDimensions) {
  const Variable x = random_tensor(Shape{5, 14, 9}, "x");
  const Variable y = int8_linear(x, first_);
  EXPECT_EQ(y.shape(), (Shape{5, 14, 14}));
  EXPECT_EQ(y.value().to_vector(),
            int8_linear(Variable(x.value().reshape(Shape{70, 9})), first_).value().to_vector());
}

TEST_F(Int8LinearTest, GivesFewExamplesWhatABatchGives) {
  for (const bool is_static : {true, false}) {
    if (!is_static) first_->input.reset();
    const auto run = [&](const Variable& x) {
      const Variable hidden = relu(int8_linear(x, first_));
      return int8_linear(add(gelu(int8_linear(x, first_)), hidden), second_).value().to_vector();
    };
    const std::vector<float> all = run(x_);
    for (const int64_t few : {1, 2, 4, 5}) {
      const Tensor x =
          Tensor::from(Shape{few, 9}, std::span(x_.value().data(), static_cast<size_t>(few * 9)));
      EXPECT_EQ(run(x), std::vector<float>(all.begin(), all.begin() + few * 5));
    }
  }
}

TEST_F(Int8LinearTest, RefusesOtherInputs) {
  expect_throws<ShapeError>(
      [&] {
        int8_linear(random_tensor(Shape{3, 8}, "x"), first_);
      },
      "linear 'first': an int8 weight of shape [14, 9] needs inputs [..., 9], "
      "found [3, 8]");
}

TEST(Int8Linear, IsNotRecorded) {
  const auto layer = layer_of(3, 4, "fc", Int8Grid());
  expect_throws<StateError>(
      [&] {
        int8_linear(random_tensor(Shape{2, 4}, "x"), layer);
      },
      "'fc' is quantized to int8, and has no gradient");
}

}  // namespace
}  // namespace lacuna::int8_linear_test
