// Operations that add their gradient of an input to what its other users have left, and sums that
// a norm computes: against the separate passes.
#include <gtest/gtest.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/autograd/ops/norm.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/shards.h"

namespace lacuna::added_gradients_test {
namespace {

using Norm = std::function<Variable(const Variable&)>;

std::vector<Norm> norms() {
  const auto weight = [] { return test::normal_tensor("weight", {6}); };
  return {[=](const Variable& x) { return layer_norm(x, weight(), weight(), {.eps = 0.1}); },
          [=](const Variable& x) { return rms_norm(x, weight(), {.eps = 0.1}); },
          [=](const Variable& x) {
            return group_norm(x, weight(), weight(), {.groups = 2, .eps = 0.1});
          }};
}

// Adds three times its gradient to its input's by itself, or leaves the addition to the engine.
struct TripleNode final : Node {
  explicit TripleNode(bool takes_) : takes(takes_) {}
  std::string_view name() const override { return "triple"; }
  bool adds_to_first() const override { return true; }
  std::vector<Tensor> backward(const Tensor& dy) override {
    Tensor sum = Tensor::zeros(dy.shape());
    if (takes) {
      earlier = take_earlier();
      if (earlier.defined()) add_gradient(sum, earlier);
    }
    for (int i = 0; i < 3; ++i) add_gradient(sum, dy);
    return {sum};
  }
  bool takes;
  Tensor earlier;
};

TEST(AddedGradients, ANodeGetsWhatOthersHaveLeftOrTheEngineAdds) {
  for (const bool takes : {true, false}) {
    const Variable x = Variable::leaf(Tensor::full({2}, 1.0f));
    const Variable stem = scale(x, 1.0f);
    const Variable tripled = record<TripleNode>(stem.value(), {stem}, takes);
    const Variable other = scale(stem, 5.0f);  // created later: its gradient comes first
    backward(sum(tripled + other));
    EXPECT_EQ(x.gradient().to_vector(), (std::vector<float>{8, 8})) << takes;
  }
}

TEST(AddedGradients, NothingIsThereForTheFirstUserOrALeaf) {
  const Variable x = Variable::leaf(Tensor::full({2}, 1.0f));
  const Variable y = record<TripleNode>(x.value(), {x}, true);
  const Variable z = record<TripleNode>(y.value(), {y}, true);
  backward(sum(z + scale(x, 1.0f)));
  EXPECT_EQ(x.gradient().to_vector(), (std::vector<float>{10, 10}));
}

// x + f(norm(x)), as pre-activation networks have it: the gradient of x is that of both branches.
TEST(AddedGradients, ThoseOfNormsAreTheSumsOfBothBranches) {
  for (const Norm& norm : norms()) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      for (const int64_t rows : {1, 3, 64, 70}) {
        const Tensor value = test::normal_tensor("x", {rows, 6}).to(order),
                     dy = test::normal_tensor("dy", {rows, 6}).to(order);
        const Variable alone = Variable::leaf(value);
        backward(scale(norm(alone), 2.0f), dy);
        const Variable leaf = Variable::leaf(value);
        const Variable x = scale(leaf, 1.0f);
        backward(x + scale(norm(x), 2.0f), dy);
        std::vector<double> expected = test::convert<double>(alone.gradient().to_vector());
        const std::vector<float> of_shortcut = dy.to_vector();
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += of_shortcut[i];
        EXPECT_LE(test::largest_error(leaf.gradient().to_vector(), expected), 1e-6);
        EXPECT_EQ(dy.to_vector(), of_shortcut);  // a given gradient is nobody's to write
      }
    }
  }
}

TEST(AddedGradients, ABranchThatIsTheNormItselfSharesNothing) {
  const Norm norm = norms()[0];
  const Tensor value = test::normal_tensor("x", {5, 6}), dy = test::normal_tensor("dy", {5, 6});
  const Variable alone = Variable::leaf(value), leaf = Variable::leaf(value);
  backward(norm(alone), dy);
  const Variable x = scale(leaf, 1.0f);
  backward(x + norm(x), dy);  // dy goes to both as one tensor
  std::vector<double> expected = test::convert<double>(alone.gradient().to_vector());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += dy.to_vector()[i];
  EXPECT_LE(test::largest_error(leaf.gradient().to_vector(), expected), 1e-6);
}

// Takes the two gradients of its output as they are, or has the engine add them first.
struct TwoNode final : Node {
  TwoNode(bool takes_, int& seconds_) : takes(takes_), seconds(seconds_) {}
  std::string_view name() const override { return "two"; }
  bool takes_two(const Tensor&) const override { return takes; }
  std::vector<Tensor> backward(const Tensor& dy) override {
    Tensor sum = dy.clone();
    const Tensor second = take_second();
    seconds += second.defined() ? 1 : 0;
    if (second.defined()) add_gradient(sum, second);
    return {sum};
  }
  bool takes;
  int& seconds;
};

TEST(AddedGradients, ANodeTakesTwoOfItsOutputOrTheEngineAdds) {
  for (const bool takes : {true, false}) {
    for (int users = 1; users <= 4; ++users) {
      int seconds = 0;
      const Variable x = Variable::leaf(Tensor::full({2}, 1.0f));
      const Variable y = record<TwoNode>(x.value(), {x}, takes, seconds);
      Variable total = scale(y, 1.0f);
      for (int i = 1; i < users; ++i) total = total + scale(y, static_cast<float>(10 * i));
      backward(sum(total));
      EXPECT_EQ(seconds, takes && users > 1 ? 1 : 0);
      EXPECT_EQ(x.gradient().to_vector()[1],
                std::vector<float>({1, 11, 31, 61})[static_cast<size_t>(users - 1)]);
    }
  }
}

TEST(AddedGradients, ANodeThatAddsToItsInputsGetsTheSumOfTwo) {
  int seconds = 0;
  const Variable x = Variable::leaf(Tensor::full({2}, 1.0f));
  const Variable y = record<TwoNode>(x.value(), {x}, true, seconds);
  const Variable tripled = record<TripleNode>(y.value(), {y}, true);
  backward(sum(tripled + scale(y, 5.0f) + scale(y, 7.0f)));
  EXPECT_EQ(x.gradient().to_vector(), (std::vector<float>{15, 15}));
}

// Keeps the gradient that passes, so that nobody may write over it.
struct HoldNode final : Node {
  explicit HoldNode(std::vector<Tensor>& held_) : held(held_) {}
  std::string_view name() const override { return "hold"; }
  std::vector<Tensor> backward(const Tensor& dy) override {
    held.push_back(dy);
    return {dy};
  }
  std::vector<Tensor>& held;
};
Variable record_held(const Variable& x, std::vector<Tensor>& held) {
  return record<HoldNode>(x.value(), {x}, held);
}

// Two residual blocks of batch normalizations, whose gradients are written over each other's: the
// same as with every gradient held by someone else.
TEST(AddedGradients, ThoseOfBatchNormsAreBitForBitTheSameWhoeverElseHoldsThem) {
  const Shape shape{20, 3, 4, 5};
  const auto norm = [](const Variable& x) {
    return batch_norm(x, test::normal_tensor("weight", {3}), test::normal_tensor("bias", {3}),
                      channel_moments(x), MomentsOf::Batch, {});
  };
  for (const Order order : {Order::RowMajor, Order::ImageSlabs, Order::ChannelBlocks}) {
    std::vector<std::vector<float>> results[2];
    for (const bool is_held : {false, true}) {
      std::vector<Tensor> held;
      const auto hold = [&](const Variable& x) { return is_held ? record_held(x, held) : x; };
      const Variable leaf = Variable::leaf(test::normal_tensor("x", shape).to(order));
      Variable x = hold(relu(norm(scale(leaf, 1.0f))));
      for (int i = 0; i < 2; ++i) {
        const Variable inner = hold(relu(norm(scale(x, 2.0f))));
        x = hold(relu(norm(scale(inner, 0.5f)) + x));
      }
      const Tensor dy = test::normal_tensor("dy", shape);
      backward(x, dy);
      EXPECT_EQ(dy.to_vector(), test::normal_tensor("dy", shape).to_vector());
      results[is_held] = {x.value().to_vector(), leaf.gradient().to_vector()};
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

// A sum that a norm computes, and the same sum computed for its own sake.
TEST(DeferredSums, AreTheSameWhoeverComputesThem) {
  for (const Norm& norm : norms()) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      const Tensor a = test::normal_tensor("a", {70, 6}).to(order),
                   b = test::normal_tensor("b", {70, 6}).to(order),
                   dy = test::normal_tensor("dy", {70, 6});
      std::vector<std::vector<float>> results[2];
      for (const bool is_asked_first : {true, false}) {
        const Variable of_a = Variable::leaf(a), of_b = Variable::leaf(b);
        const Variable x = scale(of_a, 2.0f) + scale(of_b, 3.0f);
        EXPECT_NE(x.deferred_value(), nullptr);
        if (is_asked_first) x.value();
        const Variable y = norm(x);
        EXPECT_EQ(x.deferred_value(), nullptr);
        const Variable z = x + y;
        backward(z, dy);
        results[is_asked_first] = {x.value().to_vector(), z.value().to_vector(),
                                   of_a.gradient().to_vector(), of_b.gradient().to_vector()};
      }
      EXPECT_EQ(results[0], results[1]);
    }
  }
}

TEST(DeferredSums, OrdersOfTheirTermsMayDiffer) {
  const Tensor a = test::normal_tensor("a", {70, 6}), b = test::normal_tensor("b", {70, 6});
  const Variable rows = scale(a, 1.0f) + scale(b, 1.0f);
  const Variable mixed = scale(a.to(Order::BatchSlabs), 1.0f) + scale(b, 1.0f);
  const Variable y = norms()[0](mixed);
  EXPECT_EQ(mixed.value().to_vector(), rows.value().to_vector());
  EXPECT_LE(test::largest_error(y.value().to_vector(),
                                test::convert<double>(norms()[0](rows).value().to_vector())),
            2e-6);
}

TEST(DeferredSums, LeavesAreAddedAtOnce) {
  const Variable x = Variable::leaf(Tensor::full({2}, 1.0f));
  EXPECT_EQ((x + scale(x, 2.0f)).deferred_value(), nullptr);
}

TEST(DeferredSums, AreRecordedWhereAndAsTheyWereWritten) {
  const Variable x = Variable::leaf(Tensor::full({2}, 1.0f));
  Variable in_shard, unrecorded;
  {
    const ShardScope shard(3);
    in_shard = scale(x, 2.0f) + scale(x, 3.0f);
  }
  {
    const NoGrad no_grad;
    unrecorded = scale(x, 2.0f) + scale(x, 3.0f);
  }
  ASSERT_NE(in_shard.creator(), nullptr);
  EXPECT_EQ(in_shard.creator()->shard(), 3);
  EXPECT_FALSE(unrecorded.requires_grad());
  EXPECT_EQ(unrecorded.value().to_vector(), (std::vector<float>{5, 5}));
}

}  // namespace
}  // namespace lacuna::added_gradients_test
