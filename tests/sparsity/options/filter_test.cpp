#include "lacuna/sparsity/options/filter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "lacuna/layers/linear.h"
#include "lacuna/layers/norms.h"
#include "throws.h"

namespace lacuna::filter_test {
namespace {

ParameterPtr parameter(const Shape& shape, std::string name = "fc1.weight",
                       WeightUse use = WeightUse::Linear) {
  auto p = std::make_shared<Parameter>(shape, Initializer::uniform(1.0));
  p->set_name(std::move(name));
  p->use = use;
  return p;
}

TEST(ParameterFilterTest, DefaultTakesWeightsAndLeavesOutKnownNames) {
  const ParameterFilter filter;
  EXPECT_TRUE(filter.matches(*parameter(Shape{2, 2})));
  EXPECT_FALSE(filter.matches(*parameter(Shape{4}, "fc1.bias")));
  for (const char* name :
       {"tok_Embedding.weight", "LayerNorm.weight", "lm_head.weight", "x.pe_helper.weight"}) {
    EXPECT_FALSE(filter.matches(*parameter(Shape{2, 2}, name))) << name;
  }
}

TEST(ParameterFilterTest, DefaultGoesByWhatAParameterIs) {
  const ParameterFilter filter;
  const Shape kernel{4, 2, 3, 3};
  EXPECT_TRUE(filter.matches(*parameter(kernel, "conv.weight", WeightUse::Convolution)));
  EXPECT_TRUE(filter.matches(*parameter(Shape{4, 2, 3}, "conv.weight", WeightUse::Convolution)));
  EXPECT_FALSE(filter.matches(*parameter(kernel, "norm.conv.weight", WeightUse::Convolution)));
  EXPECT_FALSE(filter.matches(*parameter(Shape{10, 4}, "tokens.weight", WeightUse::Embedding)));
  for (const char* name : {"positions", "class_token", "mine.weight"}) {
    EXPECT_FALSE(filter.matches(*parameter(Shape{1, 4}, name, WeightUse::Other))) << name;
    EXPECT_TRUE(ParameterFilter(name).matches(*parameter(Shape{1, 4}, name, WeightUse::Other)));
  }
  Linear linear({.in_features = 3, .out_features = 2});
  LayerNorm layer_norm({.features = 3});
  EXPECT_EQ(filter.select(linear.parameters()).size(), 1u);
  EXPECT_FALSE(filter.matches(*layer_norm.parameter("weight")));
}

TEST(ParameterFilterTest, RequiresDenseWins) {
  const ParameterPtr p = parameter(Shape{2, 2});
  p->requires_dense = true;
  EXPECT_FALSE(ParameterFilter("*").matches(*p));
  EXPECT_FALSE(ParameterFilter().matches(*p));
}

TEST(ParameterFilterTest, GlobThatMatchesNothingNamesTheNearest) {
  expect_throws<ConfigError>(
      [] {
        ParameterFilter("fc9.weight").select({parameter(Shape{2, 2})});
      },
      "param_filter 'fc9.weight' matches no parameter; did you mean 'fc1.weight'?");
  const ParameterPtr dense = parameter(Shape{2, 2});
  dense->requires_dense = true;
  expect_throws<ConfigError>([&] { ParameterFilter("fc1.*").select({dense}); },
                             "'fc1.*' chooses no parameter that may be sparse; the model "
                             "has: fc1.weight");
}

TEST(ParameterFilterTest, DefaultThatChoosesNothingSaysWhyOfEach) {
  const ParameterPtr dense = parameter(Shape{2, 2});
  dense->requires_dense = true;
  expect_throws<ConfigError>(
      [&] {
        ParameterFilter().select({parameter(Shape{4}, "b"),
                                  parameter(Shape{2, 2}, "lm_head.weight"),
                                  parameter(Shape{2, 2}, "mine", WeightUse::Other), dense});
      },
      "the default filter (weights of linear and convolution layers) chooses no parameter that may "
      "be sparse; the model has: b (of shape [4]), lm_head.weight (its name contains 'lm_head'), "
      "mine (not the weight of a linear or convolution layer), fc1.weight (it must stay dense); a "
      "param_filter can name others");
  expect_throws<ConfigError>([] { ParameterFilter().select({}); }, "the model has: none");
}

}  // namespace
}  // namespace lacuna::filter_test
