// The topology is the same for any number of threads, on sizes that really run on several.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "test_model.h"

namespace lacuna {
namespace {

struct Outcome {
  std::vector<uint8_t> mask;
  std::vector<float> values;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// 256 → 384 → 4, batch 256: the first product has 50 MFLOP, which gemm cuts into two blocks, and
/// arrays of 98304 elements, six blocks of an elementwise kernel.
Outcome train(const char* yaml, int threads) {
  const int before = num_threads();
  set_num_threads(threads);
  Sequential model;
  model.add<Linear>("fc1", {.in_features = 256, .out_features = 384});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = 384, .out_features = 4});
  Adam optimizer(model.parameters(), AdamOptions{});
  const auto algorithm = configure(parse_yaml(yaml, "c.yaml"), 0);
  model.apply(*algorithm);
  optimizer.apply(*algorithm);
  const CounterRng rng(0, "x");
  Tensor x = Tensor::empty(Shape{256, 256});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.mutable_data()[i] = rng.uniform(static_cast<uint64_t>(i)) - 0.5f;
  }
  std::vector<int64_t> labels(256);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 4);
  for (int step = 0; step < 6; ++step) {
    backward(cross_entropy(model(Variable(x)), IndexTensor(Shape{256}, labels)));
    optimizer.step();
    optimizer.zero_grad();
  }
  set_num_threads(before);
  const ParameterPtr weight = model.parameter("fc1.weight");
  return {weight->mask().values, weight->values().to_vector()};
}

TEST(ThreadsTest, BlocksReallyRunOnSeveralThreads) {
  const int before = num_threads();
  set_num_threads(5);
  // Each block waits until a second thread has shown up.
  std::atomic<int> arrived{0};
  parallel_blocks(2, [&](int64_t) {
    ++arrived;
    while (arrived < 2) {
    }
  });
  set_num_threads(before);
  EXPECT_EQ(arrived, 2);
}

class TopologyTest : public testing::TestWithParam<const char*> {};

TEST_P(TopologyTest, IsTheSameForAnyNumberOfThreads) {
  register_builtins();
  const Outcome one = train(GetParam(), 1);
  EXPECT_TRUE(one == train(GetParam(), 2));
  EXPECT_TRUE(one == train(GetParam(), 5));
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, TopologyTest,
    testing::Values("{algorithm: static, sparsity: 0.9}",
                    "{algorithm: set, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: rigl, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: gmp, sparsity: {type: linear, init: 0, slope: 0.1}}",
                    "{algorithm: snfs, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: snip, sparsity: 0.9}",
                    "{algorithm: ste, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: set, sparsity: 0.9, update: {freq: 2}, layout: masked}",
                    "{algorithm: rigl, sparsity: 0.9, update: {freq: 2}, layout: masked}",
                    "{algorithm: rigl, sparsity: 0.3, update: {freq: 2}, layout: csr}",
                    "{algorithm: static, sparsity: 0.9, layout: masked}"));

}  // namespace
}  // namespace lacuna
