// Every algorithm and optimizer trains to the same numbers in csr as in masked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/layers/norms.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/set.h"
#include "lacuna/sparsity/static.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::layouts_test {
namespace {

/// 20 → 24 → ReLU → 16 → ReLU → 8 on random data, by an algorithm and an optimizer in YAML.
struct TrainedRun {
  TrainedRun(const std::string& sparsity, const std::string& optimizer_config,
             const std::string& layout, const DensityLimits& csr_up_to = {}) {
    register_builtins();
    model.add<Linear>("fc1", {.in_features = 20, .out_features = 24});
    model.add<ReLU>("relu1");
    model.add<Linear>("fc2", {.in_features = 24, .out_features = 16});
    model.add<ReLU>("relu2");
    model.add<Linear>("fc3", {.in_features = 16, .out_features = 8});
    model.initialize(3);
    Config config = parse_yaml(sparsity, "c.yaml");
    if (config.is_list()) {
      for (Config& entry : config.items()) entry.set("layout", layout);
    } else {
      config.set("layout", layout);
    }
    algorithm = configure(config, 0);
    config.require_all_read();
    optimizer = make_optimizer(parse_yaml(optimizer_config, "o.yaml"), model.parameters());
    algorithm->compression().compress_below = csr_up_to;
    model.apply(*algorithm);
    optimizer->apply(*algorithm);
  }

  /// One step of two micro-batches, 16 and 7 examples.
  void step(uint64_t number) {
    const CounterRng rng(5, "data", number);
    uint64_t next = 0;
    for (const int64_t count : {16, 7}) {
      Tensor x = Tensor::empty(Shape{count, 20});
      for (float& value : x.mutable_storage()) value = 2.0f * rng.uniform(next++) - 1.0f;
      std::vector<int64_t> classes;
      for (int64_t i = 0; i < count; ++i)
        classes.push_back(static_cast<int64_t>(rng.below(next++, 8)));
      backward(cross_entropy(model(Variable(x)), IndexTensor(Shape{count}, classes)));
    }
    optimizer->step();
    optimizer->zero_grad();
  }

  Sequential model;
  std::unique_ptr<SparsityAlgorithm> algorithm;
  std::unique_ptr<Optimizer> optimizer;
};

void expect_near_scale(const std::vector<float>& found, const std::vector<float>& expected,
                       const std::string& what) {
  float largest = 0.0f;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-4f * largest) << what << ", element " << i;
  }
}

class SameNumbers
    : public testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(SameNumbers, AsMaskedForTwentySteps) {
  const auto [algorithm, optimizer, layout] = GetParam();
  TrainedRun masked(algorithm, optimizer, "masked"), other(algorithm, optimizer, layout);
  for (uint64_t step = 1; step <= 20; ++step) {
    masked.step(step);
    other.step(step);
    for (const ParameterPtr& expected : masked.model.parameters()) {
      const ParameterPtr found = other.model.parameter(expected->name());
      const std::string what = expected->name() + " after step " + std::to_string(step);
      ASSERT_EQ(found->mask(), expected->mask()) << what;
      expect_near_scale(whole(*found), whole(*expected), what);
      for (const auto& [name, slot] : expected->slots()) {
        ASSERT_TRUE(found->slots().contains(name)) << what;
        const Slot& mine = found->slots().at(name);
        if (slot.requires_dense) continue;
        expect_near_scale(whole(*found, mine.values), whole(*expected, slot.values), what + name);
      }
    }
    const auto updates = masked.algorithm->last_update(), same = other.algorithm->last_update();
    ASSERT_EQ(updates.size(), same.size());
    for (size_t i = 0; i < updates.size(); ++i) {
      EXPECT_EQ(updates[i].dropped, same[i].dropped);
      EXPECT_EQ(updates[i].grown, same[i].grown);
      EXPECT_EQ(updates[i].ever_active, same[i].ever_active);
      EXPECT_EQ(updates[i].dead_rows, same[i].dead_rows);
      EXPECT_EQ(updates[i].dead_columns, same[i].dead_columns);
    }
  }
}

// Adam's eps is 1e-5 here. Now and then the terms of a gradient cancel: of the weights that RigL
// grew in step 18, with AdamW, one got a gradient of 1.4e-8, a sum of terms of up to 1e-2. Rounding
// a term moves that sum by 5e-10 or 3 %, and which way hangs on the order of the terms, so on the
// layout and the instruction set. Adam divides a gradient by its own size: the default eps of 1e-8
// let the step carry the 3 % into the weight, 1e-4 of the largest weight. With 1e-5, a gradient
// that is off by δ moves a weight by lr δ / eps = 1000 δ at most: 5e-7 there, where the largest
// weight is 0.3.
INSTANTIATE_TEST_SUITE_P(
    Algorithms, SameNumbers,
    testing::Combine(
        testing::Values(
            "{algorithm: static, sparsity: 0.8}",
            "{algorithm: static, sparsity: 0.8, init_method: topk, balance_out_groups: 4}",
            "{algorithm: static, sparsity: 0.7, init_method: checkerboard}",
            "{algorithm: set, sparsity: 0.8, update: {freq: 3}}",
            "{algorithm: set, sparsity: 0.75, update: {freq: 3}, balance_in_groups: 4}",
            "{algorithm: rigl, sparsity: 0.8, update: {freq: 3}}",
            "{algorithm: rigl, sparsity: 0.75, update: {freq: 3}, balance_out_groups: 2}",
            "{algorithm: gmp, sparsity: {type: polynomial, init: 0.0, final: 0.9, start: 0, "
            "end: 15}, update: {freq: 3}}",
            "{algorithm: saliency, sparsity: {type: linear, init: 0.3, slope: 0.02}, "
            "update: {freq: 4}}",
            "{algorithm: dynamic, grow: {mixed: 0.5}, sparsity: 0.8, update: {freq: 3}}",
            "{algorithm: srigl, sparsity: 0.8, min_salient: 0.8, update: {freq: 3}}",
            "{algorithm: snfs, sparsity: 0.8, update: {freq: 3}}",
            "{algorithm: snip, sparsity: 0.7}",
            "{algorithm: ste, sparsity: 0.8, update: {freq: 3}}",
            "{algorithm: acdc, sparsity: 0.8, update: {freq: 4}}",
            "[{algorithm: rigl, sparsity: 0.8, update: {freq: 3}, param_filter: fc1.weight}, "
            "{algorithm: static, sparsity: 0.6, param_filter: '*.weight'}]",
            "{phases: [{until: 5, algorithm: ste, sparsity: 0.7, update: {freq: 2}}, "
            "{algorithm: snfs, sparsity: 0.8, update: {freq: 3}}]}",
            "{phases: [{until: 6, algorithm: set, sparsity: 0.6, update: {freq: 2}}, {until: 11, "
            "algorithm: dense}, {algorithm: rigl, sparsity: 0.8, update: {freq: 3}}]}"),
        testing::Values("{type: sgd, lr: 0.1, momentum: 0.9}", "{type: adam, lr: 0.01, eps: 1e-5}",
                        "{type: adam, lr: 0.01, eps: 1e-5, regrown: own}",
                        "{type: adamw, lr: 0.01, eps: 1e-5, weight_decay: 0.1}"),
        testing::Values("csr", "auto")));

TEST(LayoutOptionTest, StoresAsAsked) {
  for (const char* layout : {"masked", "csr"}) {
    TrainedRun run("{algorithm: set, sparsity: 0.3, update: {freq: 2}}", "{type: adam}", layout);
    EXPECT_EQ(run.model.parameter("fc1.weight")->pattern()->layout().name(), layout);
    EXPECT_EQ(run.algorithm->plan(4)[0].layout, layout);
    run.step(1);
    run.step(2);
    ASSERT_EQ(run.algorithm->last_update().size(), 3u);
    EXPECT_EQ(run.algorithm->last_update()[0].layout, layout);
  }
  TrainedRun dense("{algorithm: static, sparsity: 0.9}", "{type: adam}", "dense");
  EXPECT_EQ(dense.model.parameter("fc1.weight")->pattern()->layout().name(), "masked");
}

TEST(LayoutOptionTest, AutoChoosesAgainWhenTheMaskChanges) {
  TrainedRun run(
      "{algorithm: gmp, sparsity: {type: linear, init: 0, slope: 0.2}, update: {freq: 2}}",
      "{type: adam}", "auto",
      {{{"fc1.weight"}, 0.5}, {{"fc2.weight"}, 0.5}, {{"fc3.weight"}, 0.5}});
  const ParameterPtr weight = run.model.parameter("fc1.weight");
  EXPECT_EQ(weight->pattern()->layout().name(), "masked");
  EXPECT_EQ(run.algorithm->plan(4)[0].layout, "masked");
  EXPECT_EQ(run.algorithm->plan(4)[0].final_layout, "csr");
  for (uint64_t step = 1; step <= 4; ++step) run.step(step);
  EXPECT_EQ(weight->pattern()->layout().name(), "csr");
  EXPECT_EQ(weight->values().numel(), weight->pattern()->nnz());
}

TEST(LayoutOptionTest, OnlyLinearWeightsAreCompressed) {
  Sequential model;
  model.add<Linear>("fc", {.in_features = 6, .out_features = 6});
  model.add<LayerNorm>("ln", {.features = 6});
  Static csr({.sparsity = 0.5, .param_filter = "*.weight", .layout = "csr"});
  expect_throws<ConfigError>(
      [&] { model.apply(csr); },
      "layout 'csr' can only store weights of linear and convolution layers, "
      "and parameter 'ln.weight' of shape [6] is not one; exclude it with");
  const PatternShape nm = PatternShape::nm(1, 2);
  Static own({.param_filter = "ln.weight", .pattern = nm, .layout = layout_for(nm)});
  expect_throws<ConfigError>(
      [&] { model.apply(own); },
      "layout 'nm 1:2' can only store weights of linear layers, and parameter 'ln.weight' "
      "of shape [6] is not one");
  Static chosen({.sparsity = 0.5, .param_filter = "*.weight"});
  chosen.compression().compress_below = {{{"fc.weight"}, 1.0}, {{"ln.weight"}, 1.0}};
  model.apply(chosen);
  EXPECT_EQ(model.parameter("ln.weight")->pattern()->layout().name(), "masked");
  EXPECT_EQ(model.parameter("fc.weight")->pattern()->layout().name(), "csr");
}

TEST(LayoutOptionTest, UnknownNameIsAnErrorWithItsPlace) {
  expect_throws<ConfigError>([] { LayoutOption("cssr"); }, "unknown layout 'cssr'; did you mean");
  register_builtins();
  expect_throws<ConfigError>(
      [] { configure(parse_yaml("{sparsity: 0.5, layout: cr}", "c.yaml"), 0); }, "c.yaml:1:");
}

/// A user's algorithm written against masks: keeps every third position of the mask's beginning.
class Thirds final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "thirds"; }

 protected:
  MaskSet update_mask(const SparseWeight&, const MaskSet& mask, float) override {
    BitMask next = mask.bits();
    mask.bits().for_each([&](int64_t i) { next.reset(i); });
    for (int64_t i = step() % 3; i < mask.size(); i += 3) next.set(i);
    return next;
  }
};

/// SET that grows the first free positions: a user's, by masks.
class FirstFree final : public Set {
 public:
  using Set::Set;
  std::string_view type() const override { return "first_free"; }

 protected:
  MaskSet grow(const SparseWeight&, const MaskSet& kept, int64_t count) override {
    BitMask grown = kept.bits();
    for (int64_t i = 0, left = count - kept.count(); left > 0; ++i) {
      left -= grown.test(i) ? 0 : 1;
      grown.set(i);
    }
    return grown;
  }
};

template <class Algorithm>
void expect_same_masks(const char* layout) {
  DynamicOptions options{.sparsity = 0.7, .update = UpdateSchedule::every(2)};
  TestModel t, twin;
  options.layout = "masked";
  Algorithm masked(options);
  options.layout = layout;
  Algorithm other(options);
  t.apply(masked);
  twin.apply(other);
  for (int i = 0; i < 6; ++i) {
    t.step();
    twin.step();
    ASSERT_EQ(t.weight().mask(), twin.weight().mask());
  }
}

TEST(UserAlgorithms, WrittenAgainstMasksWorkOnEveryLayout) {
  for (const char* layout : {"csr", "auto"}) {
    expect_same_masks<Thirds>(layout);
    expect_same_masks<FirstFree>(layout);
  }
}

TEST(UserAlgorithms, MasksOfMoreThanTwoToThe32BitsAreRefused) {
  Sequential model;
  model.add<Linear>("wide", {.in_features = 1 << 17, .out_features = 1 << 16, .bias = false});
  const DynamicOptions options{.sparsity = SparsityTarget::fan_in(0.01),
                               .layout = "csr",
                               .update = UpdateSchedule::every(1)};
  Adam optimizer(model.parameters(), AdamOptions{});
  Thirds thirds(options);
  {
    model.apply(thirds);
    expect_throws<StateError>([&] { thirds.update(optimizer); },
                              "a mask of shape [65536, 131072] has 8589934592 positions; masks "
                              "above 2^32 are not stored as bits: use positions()");
  }
}

TEST(UserAlgorithms, SetItselfHasNoSuchLimit) {
  Sequential model;
  model.add<Linear>("wide", {.in_features = 1 << 17, .out_features = 1 << 16, .bias = false});
  Set set({.sparsity = SparsityTarget::fan_in(0.01),
           .layout = "csr",
           .update = UpdateSchedule::every(1)});
  model.apply(set);
  Adam optimizer(model.parameters(), AdamOptions{});
  set.update(optimizer);
  const std::vector<MaskUpdate> updates = set.last_update();
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_EQ(updates[0].nnz, 655);
  EXPECT_EQ(updates[0].grown, 655 - 458);
  EXPECT_FALSE(updates[0].ever_active.has_value());
}

}  // namespace
}  // namespace lacuna::layouts_test
