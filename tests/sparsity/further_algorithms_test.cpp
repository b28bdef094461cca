// SNIP, SNFS, saliency, straight-through GMP and AC/DC against their papers' equations.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "lacuna/framework/kernels/select/kth_largest.hpp"
#include "lacuna/sparsity/acdc.h"
#include "lacuna/sparsity/gmp.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/snfs.h"
#include "lacuna/sparsity/snip.h"
#include "lacuna/sparsity/static.h"
#include "lacuna/sparsity/straight_through.h"
#include "sparsity/masks/by_definition.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::further_algorithms_test {
namespace {

Schedule polynomial(double final, int end) {
  return Schedule::from_config(Config::map(
      {{"type", "polynomial"}, {"init", 0.0}, {"final", final}, {"start", 0}, {"end", end}}));
}

/// |g·w| of both weights of a dense twin, at its present values.
std::vector<float> sensitivities(TestModel& dense, const char* name) {
  return magnitudes_of_products(dense.weight(name).values(), dense.weight(name).gradient())
      .to_vector();
}

TEST(SnipTest, KeepsTheLargestConnectionSensitivitiesOfAllLayers) {
  TestModel t, dense;
  Snip algorithm({.common = {.sparsity = 0.8}});
  t.apply(algorithm);
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);  // dense up to the first step
  dense.forward_backward();
  std::vector<float> all = sensitivities(dense, "fc1.weight");
  const std::vector<float> second = sensitivities(dense, "fc2.weight");
  all.insert(all.end(), second.begin(), second.end());
  const BitMask expected = largest_mask(all, target_nnz(0.8f, 256));
  t.step();
  for (int64_t i = 0; i < 192; ++i) {
    ASSERT_EQ(t.weight("fc1.weight").pattern()->mask().test(i), expected.test(i));
  }
  for (int64_t i = 0; i < 64; ++i) {
    ASSERT_EQ(t.weight("fc2.weight").pattern()->mask().test(i), expected.test(192 + i));
  }
  const ByteArray mask = t.weight().mask();
  t.step();
  EXPECT_EQ(t.weight().mask(), mask);
}

TEST(SnipTest, PerLayerCountsWhereAsked) {
  TestModel t;
  Snip algorithm({.common = {.sparsity = 0.75}, .global = false});
  t.apply(algorithm);
  t.step();
  EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz(), 48);
  EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), 16);
}

// Half of the weights are left by masks from before; a quarter of all is asked for.
TEST(SnipTest, PrunesWithinMasksThatItInherits) {
  for (const bool global : {true, false}) {
    TestModel t;
    { t.apply(*std::make_unique<Static>(SparsityOptions{.sparsity = 0.5})); }
    Snip algorithm({.common = {.sparsity = 0.75, .init_method = "inherit"}, .global = global});
    t.apply(algorithm);
    const MaskSet before(t.weight().pattern());
    EXPECT_EQ(before.count(), 96);
    const std::vector<PlannedParameter> plan = algorithm.plan(2);
    EXPECT_EQ(plan[0].initial_nnz, 96);
    EXPECT_EQ(plan[0].final_nnz, 48);
    t.step();
    const MaskSet after(t.weight().pattern());
    EXPECT_EQ(after.count() + t.weight("fc2.weight").pattern()->nnz(), 64);
    EXPECT_EQ(count_common(before, after), after.count());
  }
}

TEST(SnipTest, RefusesASchedule) {
  expect_throws<ConfigError>([] { Snip({.common = {.sparsity = polynomial(0.9, 4)}}); },
                             "it prunes once");
}

TEST(SaliencyTest, KeepsTheLargestProductsOfWeightAndGradient) {
  TestModel t;
  Saliency algorithm({.sparsity = polynomial(0.5, 1), .update = UpdateSchedule::at_steps({1})});
  t.apply(algorithm);
  t.forward_backward();
  const Tensor gradient = Tensor::from(Shape{192}, whole(t.weight(), t.weight().gradient()));
  algorithm.autoupdate = false;
  t.optimizer->step();
  const std::vector<float> scores =
      magnitudes_of_products(Tensor::from(Shape{192}, whole(t.weight())), gradient).to_vector();
  algorithm.update(*t.optimizer);
  EXPECT_TRUE(t.weight().pattern()->mask() == largest_mask(scores, 96));
}

TEST(SaliencyTest, NeedsAGradient) {
  TestModel t;
  Saliency algorithm({.sparsity = polynomial(0.5, 1)});
  t.apply(algorithm);
  expect_throws<StateError>([&] { algorithm.update(*t.optimizer); }, "has no gradient");
}

TEST(SnfsTest, MomentumFollowsTheEquationAndGrowthFollowsMomentum) {
  TestModel t;
  Snfs algorithm({.common = {.sparsity = 0.7,
                             .update = UpdateSchedule::every(2),
                             .drop_fraction = Schedule(0.5)},
                  .momentum = 0.8,
                  .redistribute = false});
  t.apply(algorithm);
  std::vector<float> expected(192);
  for (int i = 0; i < 2; ++i) {
    TestModel twin;  // dense gradient at the same sparse weights
    for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
      twin.weight(name).assign(t.weight(name).to_dense());
    }
    twin.forward_backward();
    const std::vector<float> g = twin.weight().gradient().to_vector();
    for (size_t j = 0; j < g.size(); ++j) expected[j] = 0.8f * expected[j] + (1.0f - 0.8f) * g[j];
    if (i == 1) {
      t.forward_backward();
      algorithm.autoupdate = false;
      t.optimizer->step();
      const GroupIndex flat(ScoreGroups::flat(), Shape{192});
      const BitMask mask = t.weight().pattern()->mask();
      const BitMask dropped = by_definition::top_k(magnitudes(whole(t.weight())),
                                                   kept_after_drop(0.5f, mask.count()), mask, flat);
      algorithm.update(*t.optimizer);
      EXPECT_TRUE(t.weight().pattern()->mask() ==
                  by_definition::grow_maximum(magnitudes(expected), mask.count(), dropped, flat));
    } else {
      t.step();
    }
  }
  const StateDict state = algorithm.state_dict();
  const auto& saved = state.get<Tensor>("momentum/fc1.weight");
  for (size_t j = 0; j < expected.size(); ++j) {
    ASSERT_NEAR(saved.storage()[j], expected[j], 1e-6f);
  }
}

TEST(SnfsTest, RedistributionKeepsTheTotal) {
  TestModel t;
  Snfs algorithm(
      {.common = {
           .sparsity = 0.7, .update = UpdateSchedule::every(2), .drop_fraction = Schedule(0.5)}});
  t.apply(algorithm);
  const int64_t first = t.weight("fc1.weight").pattern()->nnz();
  const int64_t total = first + t.weight("fc2.weight").pattern()->nnz();
  bool moved = false;
  for (int i = 0; i < 8; ++i) {
    t.step();
    EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz() + t.weight("fc2.weight").pattern()->nnz(),
              total);
    moved |= t.weight("fc1.weight").pattern()->nnz() != first;
  }
  EXPECT_TRUE(moved);
}

TEST(SnfsTest, RedistributionReachesTheTargets) {
  const auto changing = [](double init, double final) {
    return Schedule::from_config(Config::map(
        {{"type", "polynomial"}, {"init", init}, {"final", final}, {"start", 0}, {"end", 10}}));
  };
  struct Case {
    Schedule sparsity;
    int64_t first_update;
    float final;
  };
  for (const Case& c :
       {Case{0.8, 4, 0.8f}, Case{changing(0.5, 0.9), 0, 0.9f}, Case{changing(0.9, 0.5), 0, 0.5f}}) {
    TestModel t;
    Snfs algorithm({.common = {.sparsity = c.sparsity,
                               .update = UpdateSchedule::every(2, c.first_update),
                               .drop_fraction = Schedule(0.3)}});
    t.apply(algorithm);
    for (int i = 0; i < 40; ++i) t.step();
    EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz() + t.weight("fc2.weight").pattern()->nnz(),
              target_nnz(c.final, 192) + target_nnz(c.final, 64))
        << c.final;
  }
}

TEST(SnfsTest, RefusesBadOptions) {
  expect_throws<ConfigError>([] { Snfs({.common = {.sparsity = 0.5}, .momentum = 1.0}); },
                             "momentum must be in [0, 1), found 1");
  expect_throws<ConfigError>(
      [] { Snfs({.common = {.sparsity = 0.5, .groups = ScoreGroups::rows(2)}}); },
      "redistribution cannot be combined with balanced groups");
  expect_throws<ConfigError>(
      [] { Snfs({.common = {.sparsity = 0.5, .keep_alive = true}}); },
      "snfs: keep_alive is for set and rigl; snfs shares its growth out by momentum");
  TestModel t;
  Snfs algorithm({.common = {.sparsity = 0.5}});
  t.apply(algorithm);
  StateDict state = algorithm.state_dict();
  state.set("momentum/fc1.weight", Tensor::zeros(Shape{16}));
  expect_throws<CheckpointError>(
      [&] { algorithm.load_state_dict(state); },
      "the sparsity state of 'fc1.weight' has shape [16], the parameter [16, 12]");
}

TEST(StraightThroughTest, TrainsADenseShadowWithTheGradientAtTheSparseWeight) {
  TestModel t, twin;
  StraightThrough algorithm({.sparsity = 0.75,
                             .init_method = "topk",
                             .param_filter = "fc1.weight",
                             .layout = "masked",
                             .update = UpdateSchedule::every(2)});
  t.apply(algorithm);
  // By hand: the shadow follows Adam with the dense gradient taken at its pruned copy.
  std::vector<float> shadow = twin.weight().to_dense().to_vector();
  BitMask mask = largest_mask(magnitudes(shadow), 48);
  for (int i = 1; i <= 6; ++i) {
    std::vector<float> sparse(shadow.size());
    mask.for_each(
        [&](int64_t j) { sparse[static_cast<size_t>(j)] = shadow[static_cast<size_t>(j)]; });
    twin.weight().assign(Tensor::from(Shape{16, 12}, sparse));
    twin.forward_backward();
    twin.weight().assign(Tensor::from(Shape{16, 12}, shadow));
    twin.optimizer->step();
    twin.optimizer->zero_grad();
    shadow = twin.weight().values().to_vector();
    if (i % 2 == 0) mask = largest_mask(magnitudes(shadow), 48);
    t.step();
    ASSERT_TRUE(t.weight().pattern()->mask() == mask) << i;
    const std::vector<float> sparse_now = whole(t.weight());
    for (int64_t j = 0; j < 192; ++j) {
      const auto k = static_cast<size_t>(j);
      ASSERT_EQ(sparse_now[k], mask.test(j) ? shadow[k] : 0.0f) << i;
    }
  }
}

TEST(StraightThroughTest, StateResumes) {
  const DynamicOptions options{.sparsity = 0.75, .update = UpdateSchedule::every(3)};
  TestModel uncut, second;
  StraightThrough straight(options), resumed(options);
  uncut.apply(straight);
  second.apply(resumed);
  for (int i = 0; i < 4; ++i) uncut.step();
  second.model.load_state_dict(uncut.model.state_dict());
  second.optimizer->load_state_dict(uncut.optimizer->state_dict());
  resumed.load_state_dict(straight.state_dict());
  for (int i = 0; i < 5; ++i) {
    uncut.step();
    second.step();
  }
  EXPECT_EQ(uncut.weight().to_dense().to_vector(), second.weight().to_dense().to_vector());
  EXPECT_EQ(uncut.weight().mask(), second.weight().mask());
}

// What an update by hand brings back has its shadow's value, as within the optimizer's step.
TEST(StraightThroughTest, UpdatesByHandAsWithinTheStep) {
  const DynamicOptions options{.sparsity = 0.75, .update = UpdateSchedule::every(2)};
  TestModel automatic, manual;
  StraightThrough one(options), other(options);
  automatic.apply(one);
  manual.apply(other);
  other.autoupdate = false;
  for (int i = 0; i < 6; ++i) {
    automatic.step();
    manual.forward_backward();
    manual.optimizer->step();
    other.update(*manual.optimizer);
    manual.optimizer->zero_grad();
    ASSERT_EQ(automatic.weight().mask(), manual.weight().mask()) << i;
    ASSERT_EQ(automatic.weight().values().to_vector(), manual.weight().values().to_vector()) << i;
  }
}

TEST(StraightThroughTest, RefusesADropFractionAndAStateOfAnotherShape) {
  expect_throws<ConfigError>(
      [] { StraightThrough({.sparsity = 0.5, .drop_fraction = Schedule(0.3)}); },
      "ste: takes no drop_fraction; the sparsity schedule sets what is dropped");
  TestModel t;
  StraightThrough algorithm({.sparsity = 0.5});
  t.apply(algorithm);
  StateDict state = algorithm.state_dict();
  state.set("shadow/fc2.weight", Tensor::zeros(Shape{4, 15}));
  expect_throws<CheckpointError>(
      [&] { algorithm.load_state_dict(state); },
      "the sparsity state of 'fc2.weight' has shape [4, 15], the parameter [4, 16]");
}

TEST(AcDcTest, AlternatesBetweenCompressedAndDense) {
  TestModel t;
  AcDc algorithm({.sparsity = 0.75, .update = UpdateSchedule::every(2)});
  t.apply(algorithm);
  std::vector<int64_t> nnz;
  for (int i = 0; i < 6; ++i) {
    t.step();
    nnz.push_back(t.weight().pattern()->nnz());
  }
  EXPECT_EQ(nnz, (std::vector<int64_t>{192, 48, 48, 192, 192, 48}));
  EXPECT_EQ(algorithm.plan(6)[0].final_nnz, 48);
  expect_throws<ConfigError>([&] { algorithm.plan(5); }, "leave the network dense at the end");
}

// The first update compresses, whatever there was before it: an odd number ends compressed.
TEST(AcDcTest, AlternatesInTheSameOrderFromMasksThatItInherits) {
  TestModel t;
  { t.apply(*std::make_unique<Static>(SparsityOptions{.sparsity = 0.5})); }
  AcDc algorithm({.sparsity = 0.75, .init_method = "inherit", .update = UpdateSchedule::every(2)});
  t.apply(algorithm);
  EXPECT_EQ(algorithm.plan(2)[0].final_nnz, 48);
  std::vector<int64_t> nnz;
  for (int i = 0; i < 6; ++i) {
    t.step();
    nnz.push_back(t.weight().pattern()->nnz());
  }
  EXPECT_EQ(nnz, (std::vector<int64_t>{48, 48, 48, 192, 192, 48}));
}

TEST(AcDcTest, RefusesAScheduleAndADropFraction) {
  expect_throws<ConfigError>([] { AcDc({.sparsity = 0.5, .drop_fraction = Schedule(0.3)}); },
                             "acdc: takes no drop_fraction");
  expect_throws<ConfigError>([] { AcDc({.sparsity = polynomial(0.9, 4)}); }, "must be a constant");
}

}  // namespace
}  // namespace lacuna::further_algorithms_test
