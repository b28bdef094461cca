#include "lacuna/framework/nn/chain.h"

#include <gtest/gtest.h>

#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"

namespace lacuna::chain_test {
namespace {

TEST(Chain, PassesValuesAndShapesOn) {
  Linear first({.in_features = 3, .out_features = 5}),
      second({.in_features = 5, .out_features = 2});
  ReLU relu;
  Chain chain;
  const Tensor x = Tensor::full({4, 3}, 0.5f);
  EXPECT_TRUE(chain.empty());
  EXPECT_EQ(chain(x).value().to_vector(), x.to_vector());
  EXPECT_EQ(chain.output_shape({3}), (Shape{3}));
  EXPECT_TRUE(chain.inputs({3}).empty());
  chain.push_back(first);
  chain.push_back(relu);
  chain.push_back(second);
  EXPECT_EQ(chain.modules().size(), 3u);
  EXPECT_EQ(chain(x).value().to_vector(), second(relu(first(x))).value().to_vector());
  EXPECT_EQ(chain.output_shape({3}), (Shape{2}));
  EXPECT_EQ(chain.inputs({3}), (std::vector<Shape>{{3}, {5}, {5}}));
}

}  // namespace
}  // namespace lacuna::chain_test
