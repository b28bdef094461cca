// The topology is the same for any number of threads, on sizes that really run on several.
#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "test_model.h"

namespace lacuna::threads_test {
namespace {

struct Outcome {
  std::vector<uint8_t> mask;
  std::vector<float> values;
  int most_threads;  // that any kernel really ran on
  bool same_as(const Outcome& other) const { return mask == other.mask && values == other.values; }
};

/// 256 → 384 → 4, batch 320: gemm cuts the first product of 63 MFLOP into two blocks and the
/// optimizer its weight's 98304 elements into six; sparse products run on five slabs.
Outcome train(const char* yaml, const char* layout, int threads) {
  const int before = num_threads();
  set_num_threads(threads);
  internal::take_most_threads();
  Sequential model;
  model.add<Linear>("fc1", {.in_features = 256, .out_features = 384});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = 384, .out_features = 4});
  Adam optimizer(model.parameters(), AdamOptions{});
  Config config = parse_yaml(yaml, "c.yaml");
  config.set("layout", layout);
  const auto algorithm = configure(config, 0);
  model.apply(*algorithm);
  optimizer.apply(*algorithm);
  const CounterRng rng(0, "x");
  Tensor x = Tensor::empty(Shape{320, 256});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.mutable_data()[i] = rng.uniform(static_cast<uint64_t>(i)) - 0.5f;
  }
  std::vector<int64_t> labels(320);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 4);
  for (int step = 0; step < 4; ++step) {
    backward(cross_entropy(model(Variable(x)), IndexTensor(Shape{320}, labels)));
    optimizer.step();
    optimizer.zero_grad();
  }
  set_num_threads(before);
  const ParameterPtr weight = model.parameter("fc1.weight");
  return {weight->mask().values, weight->values().to_vector(), internal::take_most_threads()};
}

class TopologyTest : public testing::TestWithParam<const char*> {};

TEST_P(TopologyTest, IsTheSameForAnyNumberOfThreads) {
  register_builtins();
  for (const char* layout : {"masked", "csr"}) {
    const Outcome one = train(GetParam(), layout, 1);
    EXPECT_EQ(one.most_threads, 1);
    for (const int threads : {2, 5}) {
      const Outcome several = train(GetParam(), layout, threads);
      EXPECT_EQ(several.most_threads, threads);
      EXPECT_TRUE(several.same_as(one)) << layout << ", " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, TopologyTest,
    testing::Values("{algorithm: static, sparsity: 0.9}",
                    "{algorithm: set, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: rigl, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: gmp, sparsity: {type: linear, init: 0, slope: 0.1}}",
                    "{algorithm: saliency, sparsity: {type: linear, init: 0, slope: 0.1}}",
                    "{algorithm: acdc, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: dynamic, grow: {mixed: 0.5}, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: srigl, sparsity: 0.9, min_salient: 0.8, update: {freq: 2}}",
                    "{algorithm: snfs, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: snip, sparsity: 0.9}",
                    "{algorithm: ste, sparsity: 0.9, update: {freq: 2}}",
                    "{algorithm: rigl, sparsity: 0.3, update: {freq: 2}}"));

}  // namespace
}  // namespace lacuna::threads_test
