// Nothing of dense size is allocated for a compressed parameter: operator new and Buffers are
// watched while a layer is made sparse and trained.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/sparsity/configure.h"
#include "memory/live_bytes.h"
#include "test_model.h"

namespace lacuna::memory_test {
namespace {

constexpr int64_t kIn = 1024, kOut = 1536;

/// The largest block of memory that making the layer sparse and training it for 7 steps allocates.
int64_t largest_block(const std::string& sparsity) {
  register_builtins();
  Sequential model;
  model.add<Linear>("fc1", {.in_features = kIn, .out_features = kOut});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = kOut, .out_features = 4});
  model.initialize(0);
  Adam optimizer(model.parameters(), AdamOptions{});
  const auto algorithm = configure(parse_yaml(sparsity, "c.yaml"), 0);
  algorithm->compression().compress_below = {
      {{"fc1.weight"}, 1.0}};  // measuring takes a sample of its own
  Tensor x = Tensor::empty(Shape{16, kIn});
  const CounterRng rng(0, "x");
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.mutable_data()[i] = rng.uniform(static_cast<uint64_t>(i)) - 0.5f;
  }
  const IndexTensor labels(Shape{16},
                           std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  bench::reset_peak();
  model.apply(*algorithm);
  optimizer.apply(*algorithm);
  for (int step = 0; step < 7; ++step) {
    for (int part = 0; part < 2; ++part) backward(cross_entropy(model(Variable(x)), labels));
    optimizer.step();
    optimizer.zero_grad();
  }
  const StateDict state = algorithm->state_dict();
  EXPECT_FALSE(state.empty());
  return bench::largest_allocation();
}

class MemoryTest : public testing::TestWithParam<const char*> {};

TEST_P(MemoryTest, NothingOfDenseSizeIsAllocated) {
  EXPECT_LT(largest_block(GetParam()), kIn * kOut);  // a byte a position
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, MemoryTest,
    testing::Values(
        "{algorithm: static, sparsity: 0.95, layout: csr, param_filter: fc1.weight}",
        "{algorithm: static, sparsity: 0.95, init_method: topk, param_filter: fc1.weight}",
        "{algorithm: static, sparsity: 0.95, init_method: checkerboard, param_filter: fc1.weight}",
        "{algorithm: static, sparsity: 0.95, balance_out_groups: 8, param_filter: fc1.weight}",
        "{algorithm: set, sparsity: 0.95, update: {freq: 2}, param_filter: fc1.weight}",
        "{algorithm: set, sparsity: 0.95, update: {freq: 2}, balance_in_groups: 8, "
        "param_filter: fc1.weight}",
        "{algorithm: rigl, sparsity: 0.95, update: {freq: 2}, param_filter: fc1.weight}",
        "{algorithm: rigl, sparsity: 0.95, update: {freq: 2}, balance_out_groups: 16, "
        "param_filter: fc1.weight}",
        "{algorithm: gmp, sparsity: {type: linear, init: 0.9, slope: 0.01}, update: {freq: 2}, "
        "param_filter: fc1.weight}",
        "{algorithm: saliency, sparsity: {type: linear, init: 0.9, slope: 0.01}, "
        "update: {freq: 2}, param_filter: fc1.weight}",
        "[{algorithm: rigl, sparsity: 0.95, update: {freq: 3}, param_filter: fc1.weight}]",
        "{phases: [{until: 3, algorithm: set, sparsity: 0.9, update: {freq: 2}, "
        "param_filter: fc1.weight}, {algorithm: rigl, sparsity: 0.95, update: {freq: 2}, "
        "param_filter: fc1.weight}]}"));

/// A user's algorithm by masks: drops nothing, and grows nothing.
class Same final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "same"; }

 protected:
  MaskSet update_mask(const SparseWeight&, const MaskSet& mask, float) override {
    return MaskSet(mask.shape(), mask.bits());
  }
};
const bool registered = algorithm_registry().add("same", "keeps its mask", make_dynamic<Same>);

TEST(UsersMemoryTest, AUsersMasksCostABitAPosition) {
  EXPECT_TRUE(registered);
  EXPECT_LT(largest_block("{algorithm: same, layout: csr, sparsity: 0.95, update: {freq: 1}, "
                          "param_filter: fc1.weight}"),
            kIn * kOut);
}

}  // namespace
}  // namespace lacuna::memory_test
