#include "lacuna/framework/autograd/int8/int8_convolution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/positions.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::int8_convolution_test {
namespace {

std::shared_ptr<Int8ConvolutionLayer> convolution_of(int64_t out, int64_t in,
                                                     const std::string& name,
                                                     std::optional<Int8Grid> input) {
  auto layer = std::make_shared<Int8ConvolutionLayer>();
  layer->name = name;
  const Positions all = Positions::all(Shape{out, in, 3, 3});
  std::vector<int8_t> values;
  for (const float v : random_values(out * in * 9, name)) {
    values.push_back(static_cast<int8_t>(127.0f * v));
  }
  layer->weight = int8_filter(out, in, 9, all.row_begin(), all.column(), values);
  layer->window = {.kernel = {3, 3}, .padding = {1, 1}};
  for (const float v : random_values(out, name + "/scales")) {
    layer->weight_scales.push_back((1.1f + v) / 5000.0f);
  }
  layer->bias = random_values(out, name + "/bias");
  layer->input = input;
  return layer;
}

/// The value as a constant, so that nothing is fused with what made it.
Variable settled(const Variable& x) { return Variable(x.value()); }

class Int8ConvolutionTest : public testing::Test {
 protected:
  const NoGrad no_grad_;
  const Variable x_ = random_tensor(Shape{5, 8, 6, 7}, "x");
  const std::shared_ptr<Int8ConvolutionLayer> first_ =
      convolution_of(8, 8, "first", Int8Grid{.scale = 1.0f / 127.0f, .zero = 128});
  const std::shared_ptr<Int8ConvolutionLayer> second_ =
      convolution_of(8, 8, "second", Int8Grid{.scale = 0.02f, .zero = 3});
};

// A block of a ResNet whose normalizations are folded, and another behind it.
TEST_F(Int8ConvolutionTest, FusesABlockToTheSameBits) {
  const auto block = [&](const Variable& x, const auto& between) {
    const Variable hidden = between(relu(between(folded_batch_norm(int8_conv2d(x, first_)))));
    const Variable y = between(folded_batch_norm(int8_conv2d(hidden, second_)));
    return between(relu(between(add(y, x))));
  };
  const auto fused = [](const Variable& x) { return x; };
  for (const int64_t batch : {5, 17}) {  // few images, and slabs
    const Variable x = random_tensor(Shape{batch, 8, 6, 7}, "x");
    const Variable once = block(x, fused);
    EXPECT_NE(once.deferred_value(), nullptr);
    const Variable twice = block(once, fused);
    EXPECT_EQ(once.deferred_value(), nullptr);  // the shortcut has asked for it
    EXPECT_EQ(twice.value().to_vector(), block(block(x, settled), settled).value().to_vector());
  }
}

TEST_F(Int8ConvolutionTest, GivesFewImagesWhatItGivesMany) {
  const Tensor many = random_tensor(Shape{17, 8, 6, 7}, "x");
  const Tensor few = random_tensor(Shape{3, 8, 6, 7}, "x");
  for (const bool is_static : {true, false}) {
    if (!is_static) first_->input.reset();
    const std::vector<float> expected = relu(int8_conv2d(many, first_)).value().to_vector();
    const std::vector<float> found = relu(int8_conv2d(few, first_)).value().to_vector();
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin()));
  }
}

TEST_F(Int8ConvolutionTest, IsNearTheFloatProduct) {
  for (const bool is_static : {true, false}) {
    if (!is_static) first_->input.reset();
    const std::vector<float> y = int8_conv2d(x_, first_).value().to_vector();
    const std::vector<float> weights = random_values(8 * 72, "first");
    size_t at = 0;
    for (int64_t b = 0; b < 5; ++b) {
      for (size_t row = 0; row < 8; ++row) {
        for (int64_t i = 0; i < 6; ++i) {
          for (int64_t j = 0; j < 7; ++j) {
            double sum = first_->bias[row];
            for (int64_t k = 0; k < 72; ++k) {
              const int64_t up = i + k % 9 / 3 - 1, left = j + k % 3 - 1;
              if (up < 0 || up >= 6 || left < 0 || left >= 7) continue;
              const auto w =
                  static_cast<int8_t>(127.0f * weights[row * 72 + static_cast<size_t>(k)]);
              sum += static_cast<double>(w) * first_->weight_scales[row] *
                     static_cast<double>(x_.value().data()[((b * 8 + k / 9) * 6 + up) * 7 + left]);
            }
            ASSERT_NEAR(y[at++], sum, 0.01);
          }
        }
      }
    }
  }
}

TEST_F(Int8ConvolutionTest, TakesImagesOfOtherSizes) {
  for (const Shape& shape : {Shape{2, 8, 3, 9}, Shape{2, 8, 9, 3}, Shape{20, 8, 3, 9}}) {
    const Variable y = int8_conv2d(random_tensor(shape, "x"), first_);
    EXPECT_EQ(y.value().shape(), shape);
  }
}

TEST_F(Int8ConvolutionTest, RefusesOtherInputs) {
  expect_throws<ShapeError>(
      [&] {
        int8_conv2d(random_tensor(Shape{3, 4, 5, 5}, "x"), first_);
      },
      "conv2d 'first': an int8 weight of 8 input channels needs images "
      "[batch, 8, height, width], found [3, 4, 5, 5]");
}

TEST(Int8Convolution, IsNotRecorded) {
  const auto layer = convolution_of(4, 4, "conv", Int8Grid());
  expect_throws<StateError>(
      [&] {
        int8_conv2d(random_tensor(Shape{1, 4, 3, 3}, "x"), layer);
      },
      "'conv' is quantized to int8, and has no gradient");
}

}  // namespace
}  // namespace lacuna::int8_convolution_test
