// A batch in shards gives what the whole batch gives, up to the order of its sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/distributed/data_parallel.hpp"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/dropout.h"
#include "lacuna/layers/residual.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::shards_test {
namespace {

// A stem, a block whose normalization takes an addition and a ReLU in, another whose shortcut has a
// normalization too.
void build(Sequential& model) {
  model.add<Conv2d>("stem", {.in_channels = 3, .out_channels = 4, .kernel = {3, 3}});
  model.add<BatchNorm>("bn", {.channels = 4});
  model.add<ReLU>("relu1");
  auto& block = model.add<Residual>("block");
  block.add<Conv2d>("conv1", {.in_channels = 4, .out_channels = 4, .kernel = {1, 1}});
  block.add<BatchNorm>("bn1", {.channels = 4});
  block.add_shortcut<BatchNorm>("bn2", {.channels = 4});
  model.add<ReLU>("relu2");
  model.add<Dropout>("drop", {.p = 0.4});
  model.initialize(3);
}

Tensor part_of(const Tensor& whole, const ExampleRange& range) {
  std::vector<int64_t> sizes(whole.shape().sizes().begin(), whole.shape().sizes().end());
  const int64_t size = whole.numel() / sizes[0];
  sizes[0] = range.count;
  return Tensor::from(Shape(sizes),
                      whole.storage().subspan(static_cast<size_t>(range.first * size),
                                              static_cast<size_t>(range.count * size)));
}

struct Results {
  std::vector<std::vector<float>> gradients, buffers;
};

Results results(Module& model) {
  Results all;
  for (const ParameterPtr& p : model.parameters())
    all.gradients.push_back(p->gradient().to_vector());
  for (const auto& [name, buffer] : model.buffers()) all.buffers.push_back(buffer->to_vector());
  return all;
}

Results in_one(const Tensor& x, const Tensor& target) {
  Sequential model;
  build(model);
  backward(mse_loss(model(Variable(x)), Variable(target)));
  return results(model);
}

Results in_shards(const Tensor& x, const Tensor& target, int64_t shards) {
  Sequential model;
  build(model);
  DataParallel parallel(model, nullptr, {.shards = shards});
  const int64_t examples = x.shape()[0];
  std::vector<BatchShard> list;
  std::vector<Variable> inputs;
  for (int64_t s = 0; s < shards; ++s) {
    list.push_back({.index = s, .examples = shard_examples(s, shards, examples)});
    inputs.emplace_back(part_of(x, list.back().examples));
  }
  DataParallel::Step step(parallel, list, shards);
  const std::vector<Variable> outputs = model.forward_shards(inputs);
  std::vector<Variable> losses;
  for_each_shard([&](size_t i) {
    const ExampleRange& range = list[i].examples;
    const float share = static_cast<float>(range.count) / static_cast<float>(examples);
    losses.push_back(scale(mse_loss(outputs[i], Variable(part_of(target, range))), share));
  });
  backward(losses, std::vector<Tensor>(losses.size(), Tensor::full(Shape{}, 1.0f)));
  step.finish();
  return results(model);
}

void expect_near(const std::vector<std::vector<float>>& a,
                 const std::vector<std::vector<float>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    // Sums of some hundred floats of about 0.1: their rounding is below 1e-6.
    EXPECT_THAT(a[i], testing::Pointwise(testing::FloatNear(2e-6f), b[i])) << i;
  }
}

TEST(ShardedLayers, GradientsAndMomentsAreThoseOfTheWholeBatch) {
  const Tensor x = random_tensor({11, 3, 5, 6}, "x"),
               target = random_tensor({11, 4, 3, 4}, "target");
  const Results whole = in_one(x, target);
  for (const int64_t shards : {1, 2, 3, 8, 11}) {
    const Results parts = in_shards(x, target, shards);
    expect_near(parts.gradients, whole.gradients);
    expect_near(parts.buffers, whole.buffers);
  }
}

// A module that runs its child itself, as a user's may.
class Wrapper final : public Module {
 public:
  Wrapper() : norm_(register_module("bn", std::make_unique<BatchNorm>(BatchNorm::Options{2}))) {}
  std::string_view type() const override { return "wrapper"; }

 protected:
  Variable forward(const Variable& input) override { return norm_(input); }

 private:
  Module& norm_;
};

TEST(ShardedLayers, ANormInAModuleThatRunsShardsItselfSaysSo) {
  Wrapper model;
  DataParallel parallel(model, nullptr, {.shards = 2});
  DataParallel::Step step(parallel, {{0, {0, 2}, nullptr}, {1, {2, 2}, nullptr}}, 2);
  const std::vector<Variable> inputs(2, Variable(random_tensor({2, 2}, "x")));
  expect_throws<StateError>([&] { model.forward_shards(inputs); },
                            "let the module override forward_in_shards");
}

TEST(ShardedLayers, ShardsNeedABatchOfThem) {
  Sequential model;
  model.add<ReLU>("relu");
  const std::vector<Variable> inputs(2, Variable(random_tensor({2, 2}, "x")));
  expect_throws<StateError>([&] { model.forward_shards(inputs); },
                            "was given 2 shards of a batch which has none");
}

TEST(DataParallel, NamesTheProcessesThatDivideTheShards) {
  expect_throws<ConfigError>([] { require_processes_divide(6, 4); },
                             "4 processes cannot share 6 shards equally; start 1, 2, 3 or 6");
}

}  // namespace
}  // namespace lacuna::shards_test
