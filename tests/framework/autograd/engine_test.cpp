#include "lacuna/framework/autograd/engine.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::engine_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Variable leaf(std::vector<float> values) {
  return Variable::leaf(Tensor::from({static_cast<int64_t>(values.size())}, values));
}

TEST(Backward, AccumulatesOverSeveralCalls) {
  const Variable x = leaf({1.0f, 2.0f});
  EXPECT_FALSE(x.gradient().defined());
  backward(sum(scale(x, 3.0f)));
  backward(sum(x * x));
  EXPECT_THAT(x.gradient().to_vector(), ElementsAre(5.0f, 7.0f));
  Variable again = x;  // a handle to the same leaf
  again.zero_gradient();
  EXPECT_FALSE(x.gradient().defined());
}

TEST(Backward, ADiamondAddsUpBeforeItGoesOn) {
  const Variable x = leaf({1.0f, -2.0f});
  const Variable stem = scale(x, 2.0f);
  const Variable left = scale(stem, 3.0f), right = stem * stem;
  int runs = 0;
  const BackwardTrace trace([&](const NodeRun&) { ++runs; });
  backward(sum(left + right));
  EXPECT_THAT(x.gradient().to_vector(), ElementsAre(14.0f, -10.0f));  // 6 + 8 x
  EXPECT_EQ(runs, 5);  // the stem once, not once a branch
}

TEST(Backward, ALeafsGradientIsNotSharedWithTheGivenOne) {
  const Variable x = leaf({1.0f});
  const Tensor given = Tensor::full({1}, 2.0f);
  const Variable y = x + x;
  backward(y, given);
  EXPECT_EQ(x.gradient().item(), 4.0f);
  EXPECT_EQ(given.item(), 2.0f);
}

// The gradient would be that of other weights than the forward pass used.
TEST(Backward, AWeightThatHasChangedSinceIsAnError) {
  const auto weight = std::make_shared<Parameter>(Shape{2, 3}, Initializer::constant(0.5));
  weight->set_name("fc.weight");
  const std::vector<std::function<void()>> changes = {
      [&] { weight->mutable_values().mutable_data()[0] = 2.0f; },
      [&] {
        weight->assign(Tensor::full({2, 3}, 1.0f));
      },
      [&] { weight->initialize(3); },
      [&] {
        weight->replace(weight->pattern(), Tensor::full({2, 3}, 2.0f), Tensor());
      }};
  for (const auto& change : changes) {
    const Variable x = Variable::leaf(Tensor::full({4, 3}, 1.0f));
    const Variable loss = sum(linear(x, weight, Variable()));
    change();
    EXPECT_THAT([&] { backward(loss); },
                ThrowsMessage<StateError>(HasSubstr(
                    "the weight 'fc.weight' has changed since the forward pass; call backward")));
    backward(sum(linear(x, weight, Variable())));
    EXPECT_TRUE(x.gradient().defined());
    // The gradient of the weight itself does not read it.
    const Variable first = sum(linear(Variable(Tensor::full({4, 3}, 1.0f)), weight, Variable()));
    change();
    EXPECT_NO_THROW(backward(first));
  }
  const Variable images = Variable::leaf(Tensor::full({1, 1, 4, 4}, 1.0f));
  const auto kernel = std::make_shared<Parameter>(Shape{2, 1, 3, 3}, Initializer::constant(0.5));
  const Variable loss = sum(conv2d(images, kernel, Variable(), {}));
  kernel->mutable_values();
  EXPECT_THAT([&] { backward(loss); }, ThrowsMessage<StateError>(HasSubstr("has changed since")));
}

constexpr int kLong = 100000;

TEST(Backward, ALongChainDoesNotOverflowTheStack) {
  const Variable x = leaf({1.0f});
  Variable y = x;
  for (int i = 0; i < kLong; ++i) y = scale(y, 1.0f);
  backward(y);
  EXPECT_EQ(x.gradient().item(), 1.0f);
}

TEST(Backward, ALongChainIsDestroyedWithoutBackward) {
  Variable y = leaf({1.0f});
  for (int i = 0; i < kLong; ++i) y = y + y;
  y = Variable();
  EXPECT_FALSE(y.defined());
}

TEST(Backward, ALongSumIsComputedAndDestroyed) {
  for (const bool is_computed : {false, true}) {
    const Variable x = leaf({1.0f, 2.0f});
    const Variable term = scale(x, 0.5f);
    Variable sum = scale(x, 0.0f);
    for (int i = 0; i < kLong; ++i) sum = sum + term;
    if (!is_computed) continue;
    EXPECT_THAT(sum.value().to_vector(), testing::ElementsAre(50000.0f, 100000.0f));
    backward(sum, Tensor::from({2}, std::vector<float>{1.0f, 1.0f}));
    EXPECT_THAT(x.gradient().to_vector(), testing::ElementsAre(50000.0f, 50000.0f));
  }
}

TEST(Backward, ASecondOneIsAnError) {
  const Variable x = leaf({1.0f});
  const Variable y = scale(x, 2.0f);
  backward(y);
  EXPECT_THAT([&] { backward(y); },
              ThrowsMessage<StateError>("backward ran a second time through 'scale': the first "
                                        "pass freed the graph; run the forward pass again"));
  EXPECT_EQ(x.gradient().item(), 2.0f);
}

TEST(Backward, BadCallsAreErrors) {
  const Variable x = leaf({1.0f, 2.0f});
  EXPECT_THAT([&] { backward(relu(x)); },
              ThrowsMessage<ShapeError>("backward needs a loss with one element, found shape [2]"));
  EXPECT_THAT([&] { backward(relu(x), Tensor::zeros({3})); },
              ThrowsMessage<ShapeError>("backward: the output has shape [2], its gradient [3]"));
  EXPECT_THAT([&] { backward(Variable(Tensor::scalar(1.0f))); },
              ThrowsMessage<StateError>(
                  "backward: the value does not depend on anything that requires a gradient"));
}

TEST(Backward, FreesWhatNodesSaved) {
  const Variable x = leaf(std::vector<float>(1000, 1.0f));
  const Variable y = sum(gelu(x));
  const auto node = y.creator()->inputs()[0].creator();
  EXPECT_EQ(node->saved_bytes(), 4000);
  EXPECT_FALSE(node->released());
  backward(y);
  EXPECT_TRUE(node->released());
  EXPECT_EQ(node->saved_bytes(), 0);
  EXPECT_TRUE(node->inputs().empty());
}

TEST(NoGradScope, RecordsNothingAndEnds) {
  const Variable x = leaf({1.0f});
  {
    const NoGrad outer;
    { const NoGrad inner; }
    EXPECT_FALSE(grad_enabled());
    const Variable y = relu(x);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_EQ(y.creator(), nullptr);
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_TRUE(relu(x).requires_grad());
}

TEST(Constants, GetNoNodeAndNoGradient) {
  const Variable constant = Tensor::full({2}, 3.0f), x = leaf({1.0f, 2.0f});
  EXPECT_EQ(relu(constant).creator(), nullptr);
  backward(sum(x * constant));
  EXPECT_THAT(x.gradient().to_vector(), ElementsAre(3.0f, 3.0f));
  EXPECT_THAT([&] { constant.gradient(); },
              ThrowsMessage<StateError>("only a leaf accumulates a gradient"));
  EXPECT_THAT([] { Variable().value(); },
              ThrowsMessage<StateError>("an undefined variable has no value"));
}

TEST(Trace, ReportsNodesWithShapesAndBytesInTheOrderTheyRan) {
  const auto weight = std::make_shared<Parameter>(Shape{3, 5}, Initializer::uniform(1.0));
  weight->set_name("fc.weight");
  const Variable bias = leaf({0.0f, 0.0f, 0.0f});
  const Variable loss = mean(relu(linear(Tensor::full({4, 5}, 1.0f), weight, bias)));
  std::vector<NodeRun> runs;
  {
    const BackwardTrace trace([&](const NodeRun& run) { runs.push_back(run); });
    backward(loss);
  }
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].name, "mean");
  EXPECT_EQ(runs[1].name, "relu");
  EXPECT_EQ(runs[1].saved_bytes, 48);
  EXPECT_EQ(runs[2].name, "linear");
  EXPECT_EQ(runs[2].input_shapes[0], (Shape{4, 5}));
  EXPECT_EQ(runs[2].output_shape, (Shape{4, 3}));
  EXPECT_EQ(runs[2].saved_bytes, 80);
  EXPECT_GE(runs[2].seconds, 0.0);
  EXPECT_THAT(runs[1].to_string(), HasSubstr("[4, 3] -> [4, 3]   48 bytes saved"));
  EXPECT_THAT(runs[1].to_string(), testing::StartsWith("relu "));
  backward(sum(bias));  // the switch is off again
  EXPECT_EQ(runs.size(), 3u);
}

TEST(Parameters, CollectTheirGradientLeavesKeepTheirs) {
  const auto scale_of = std::make_shared<Parameter>(Shape{2}, Initializer::constant(2.0));
  scale_of->set_name("scale");
  const Variable x = leaf({3.0f, 4.0f}), p = Variable::of(scale_of);
  backward(sum(x * p));
  EXPECT_THAT(scale_of->gradient().to_vector(), ElementsAre(3.0f, 4.0f));
  EXPECT_FALSE(p.gradient().defined());
  EXPECT_THAT(x.gradient().to_vector(), ElementsAre(2.0f, 2.0f));
  backward(sum(x * Variable::of(scale_of)));
  EXPECT_THAT(scale_of->gradient().to_vector(), ElementsAre(6.0f, 8.0f));
  scale_of->zero_gradient();
  EXPECT_FALSE(scale_of->has_gradient());
}

TEST(Parameters, FrozenOnesCollectNoGradientAndPassItOn) {
  const auto make = [](const std::string& name, const Shape& shape) {
    auto parameter = std::make_shared<Parameter>(shape, Initializer::constant(0.5));
    parameter->set_name(name);
    return parameter;
  };
  const ParameterPtr first = make("first", {3, 2}), middle = make("middle", {3, 3}),
                     last = make("last", {1, 3}), bias = make("bias", {3});
  first->trainable = middle->trainable = bias->trainable = false;
  EXPECT_FALSE(Variable::of(bias).requires_grad());
  const Tensor x = Tensor::full({4, 2}, 1.0f);
  // Nothing is recorded where nothing before wants a gradient.
  EXPECT_FALSE(linear(x, first, Variable::of(bias)).requires_grad());
  backward(sum(linear(relu(linear(x, first, Variable::of(bias))), last, {})));
  EXPECT_THAT(last->gradient().to_vector(), testing::Each(6.0f));
  // And a gradient passes through.
  first->trainable = true;
  backward(sum(linear(linear(x, first, {}), middle, Variable::of(bias))));
  EXPECT_THAT(first->gradient().to_vector(), testing::Each(6.0f));
  for (const ParameterPtr& frozen : {middle, bias}) {
    EXPECT_FALSE(frozen->has_gradient()) << frozen->name();
  }
}

// Positions outside the mask see NaN and Inf; the gradient is selected, not multiplied by zero.
TEST(Parameters, NanOutsideTheMaskDoesNotLeak) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto weight = std::make_shared<Parameter>(Shape{1, 3}, Initializer::constant(1.0));
  weight->set_name("fc.weight");
  BitMask mask = BitMask::ones(3);
  mask.reset(1);
  weight->set_pattern(Pattern::masked({1, 3}, mask));
  weight->prune();
  for (int call = 1; call <= 2; ++call) {  // written first, then added to
    const Tensor x = Tensor::from({1, 3}, std::vector<float>{2.0f, nan, 3.0f});
    backward(linear(x, weight, {}));
    const auto factor = static_cast<float>(call);
    EXPECT_THAT(weight->gradient().to_vector(), ElementsAre(2.0f * factor, 0.0f, 3.0f * factor));
  }
  weight->zero_gradient();
  for (int call = 1; call <= 2; ++call) {  // through the general path, too
    const Tensor x = Tensor::from({1, 3}, std::vector<float>{2.0f, INFINITY, nan});
    weight->accumulate(x);
    EXPECT_EQ(weight->gradient().to_vector()[1], 0.0f);
    EXPECT_TRUE(std::isnan(weight->gradient().to_vector()[2]));
  }
}

TEST(AddGradient, NamesShapesThatDiffer) {
  Tensor total = Tensor::zeros({2});
  EXPECT_THAT([&] { add_gradient(total, Tensor::zeros({3})); },
              ThrowsMessage<ShapeError>("two gradients of one value have shapes [2] and [3]"));
}

TEST(AddGradient, AddsAcrossStorageOrders) {
  Tensor total = Tensor::full({2, 3}, 1.0f).to(Order::BatchSlabs);
  add_gradient(total, Tensor::full({2, 3}, 2.0f));
  EXPECT_EQ(total.to_vector(), std::vector<float>(6, 3.0f));
}

}  // namespace
}  // namespace lacuna::engine_test
