#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/sparsity/dynamic.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/static.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::algorithm_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StaticTest, KeepsItsMaskAndPrunesStates) {
  TestModel t;
  Static algorithm({.sparsity = 0.75});
  t.apply(algorithm);
  const BitMask mask = t.weight().pattern()->mask();
  EXPECT_EQ(mask.count(), target_nnz(0.75f, 192));
  for (int i = 0; i < 5; ++i) {
    t.step();
    EXPECT_TRUE(t.weight().pattern()->mask() == mask);
    expect_zero_outside(t.weight());
  }
  EXPECT_EQ(algorithm.step(), 5);
  EXPECT_TRUE(t.weight("fc1.bias").pattern()->is_dense());
}

// Whatever makes its mask: a checkerboard of so many positions would not come to an end.
TEST(StaticTest, RefusesAWeightWhoseValuesFitInNoMemory) {
  for (const char* method : {"random", "balanced", "topk", "checkerboard"}) {
    Sequential model;
    model.add<Linear>("huge", {.in_features = int64_t{1} << 30, .out_features = int64_t{1} << 28});
    Static algorithm({.sparsity = 0.5, .init_method = method});
    expect_throws<MemoryError>(
        [&] { model.apply(algorithm); },
        "parameter 'huge.weight' [268435456, 1073741824] with 144115188075855872 nonzeros: out of "
        "memory: 576460752303.4 MB more were requested, and there are ");
  }
}

TEST(StaticTest, RefusesWhatIsNoConstantBelowOne) {
  expect_throws<ConfigError>([] { Static({.sparsity = 1.0}); }, "must be in [0, 1), found 1");
  expect_throws<ConfigError>(
      [] {
        Static({.sparsity = Schedule::from_config(Config::list({0.1, 0.2}))});
      },
      "must be a constant");
  // What float32 rounds to 1 is below 1; that nothing is left of few positions is told elsewhere.
  EXPECT_NO_THROW(Static({.sparsity = 0.99999999}));
  expect_throws<ConfigError>([] { Static({.sparsity = std::nan("")}); },
                             "sparsity must be a number in [0, 1], found NaN");
}

TEST(StaticTest, RefusesOptionsOfChangingMasks) {
  const char* words = "static: takes no update, drop_fraction or keep_alive";
  expect_throws<ConfigError>([] { Static({.sparsity = 0.5, .update = UpdateSchedule::every(2)}); },
                             words);
  expect_throws<ConfigError>([] { Static({.sparsity = 0.5, .drop_fraction = 0.3}); }, words);
  expect_throws<ConfigError>([] { Static({.sparsity = 0.5, .keep_alive = true}); }, words);
}

TEST(ApplyTest, OrderAndRepetitionAreErrors) {
  TestModel t;
  Static algorithm({.sparsity = 0.5}), second({.sparsity = 0.5});
  expect_throws<StateError>([&] { t.optimizer->apply(algorithm); },
                            "must be applied to the model before the optimizer");
  t.model.apply(algorithm);
  expect_throws<StateError>([&] { t.model.apply(algorithm); }, "applied to a model already");
  expect_throws<StateError>([&] { t.model.apply(second); },
                            "'fc1.weight' is made sparse by 'static' already");
  t.optimizer->apply(algorithm);
  expect_throws<StateError>([&] { t.optimizer->apply(algorithm); },
                            "applied to an optimizer already");
}

TEST(ApplyTest, FilterThatMatchesNothingListsTheNames) {
  TestModel t;
  Static algorithm({.sparsity = 0.5, .param_filter = "conv*"});
  expect_throws<ConfigError>([&] { t.model.apply(algorithm); },
                             "(parameters: fc1.weight, fc1.bias, fc2.weight, fc2.bias)");
}

TEST(ApplyTest, OptimizerMustTrainTheParameters) {
  TestModel t;
  Adam other({t.model.parameter("fc2.weight")}, AdamOptions{});
  Static algorithm({.sparsity = 0.5});
  t.model.apply(algorithm);
  expect_throws<StateError>([&] { other.apply(algorithm); },
                            "does not train parameter 'fc1.weight'");
}

TEST(ApplyTest, KnowsItsOwnParametersOnly) {
  TestModel t;
  Static algorithm({.sparsity = 0.5, .param_filter = "fc1.weight"});
  t.apply(algorithm);
  expect_throws<StateError>(
      [&] { algorithm.target_sparsity(t.weight("fc2.weight")); },
      "parameter 'fc2.weight' does not belong to sparsity algorithm 'static'");
}

TEST(ApplyTest, RefusesAStateOfAnotherShape) {
  TestModel t;
  Static algorithm({.sparsity = 0.5});
  t.apply(algorithm);
  StateDict state = algorithm.state_dict();
  state.set("ever_active/fc1.weight", ByteArray{Shape{2, 2}, {1, 0, 0, 1}});
  expect_throws<CheckpointError>(
      [&] { algorithm.load_state_dict(state); },
      "the sparsity state of 'fc1.weight' has shape [2, 2], expected a bit for each of 192");
  expect_throws<CheckpointError>([&] { algorithm.load_state_dict({}); },
                                 "the saved state has no 'type'");
}

TEST(ApplyTest, RequiresDenseOnAModuleIsHonoured) {
  TestModel t;
  t.model.children()[0].second->set_requires_dense(true);
  Static algorithm({.sparsity = 0.5});
  t.apply(algorithm);
  EXPECT_TRUE(t.weight("fc1.weight").pattern()->is_dense());
  EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), 32);
}

TEST(ApplyTest, FrozenParametersArePassedOver) {
  TestModel t;
  t.model.freeze({"fc1.*"});
  const std::vector<float> before = whole(t.weight("fc1.weight"));
  Static algorithm({.sparsity = 0.5});
  t.apply(algorithm);
  EXPECT_TRUE(t.weight("fc1.weight").pattern()->is_dense());
  EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), 32);
  t.step();
  EXPECT_EQ(whole(t.weight("fc1.weight")), before);
  expect_throws<ConfigError>(
      [&] {
        Static other({.sparsity = 0.5, .param_filter = "fc1.weight"});
        t.model.apply(other);
      },
      "'fc1.weight' chooses no parameter that may be sparse; the model has: fc1.weight "
      "(frozen), fc1.bias (frozen), fc2.weight, fc2.bias");
}

TEST(ApplyTest, NamesTheFrozenParametersThatItsFilterWouldChoose) {
  TestModel t;
  t.model.freeze({"fc1.*"});
  Static all({.sparsity = 0.5}), other({.sparsity = 0.5, .param_filter = "fc2.*"});
  EXPECT_THAT(all.frozen_choices(t.model.parameters()), testing::ElementsAre("fc1.weight"));
  EXPECT_THAT(other.frozen_choices(t.model.parameters()), testing::IsEmpty());
  Group group;
  group.add("fc2.weight", std::make_unique<Static>(
                              SparsityOptions{.sparsity = 0.5, .param_filter = "fc2.weight"}));
  group.add("*", std::make_unique<Static>(SparsityOptions{.sparsity = 0.5, .param_filter = "*"}));
  EXPECT_THAT(group.frozen_choices(t.model.parameters()),
              testing::ElementsAre("fc1.weight", "fc1.bias"));
}

TEST(ApplyTest, RefusesAParameterThatWasFrozenMeanwhile) {
  TestModel t;
  Static algorithm({.sparsity = 0.5});
  t.model.apply(algorithm);
  t.weight("fc2.weight").trainable = false;
  expect_throws<StateError>([&] { t.optimizer->apply(algorithm); },
                            "parameter 'fc2.weight' was frozen after sparsity algorithm 'static' "
                            "had taken charge of it; freeze it before");
}

TEST(ApplyTest, StatesThatExistBecomeSparseAtOnce) {
  TestModel t;
  t.step();  // Adam's states are dense now
  Static algorithm({.sparsity = 0.5});
  t.apply(algorithm);
  expect_zero_outside(t.weight());
}

TEST(ApplyTest, AnAlgorithmThatGoesTakesItsHooksAlong) {
  TestModel t;
  {
    Static algorithm({.sparsity = 0.5});
    t.apply(algorithm);
  }
  t.step();
  RigL again({.sparsity = 0.5});
  t.model.apply(again);  // the parameters are free again
}

TEST(HooksTest, TargetAndComputedSparsityAreAnnounced) {
  TestModel t;
  Static algorithm({.sparsity = 0.75});
  std::vector<double> targets;
  std::vector<std::string> parameters;
  algorithm.register_target_sparsity_hook(
      [&](SparsityAlgorithm&, const std::string&, double target) { targets.push_back(target); });
  HookHandle removed = algorithm.register_target_sparsity_hook(
      [](SparsityAlgorithm&, const std::string&, double) { FAIL() << "was removed"; });
  removed.remove();
  algorithm.register_computed_sparsity_hook(
      [&](SparsityAlgorithm&, const Parameter& p, double actual) {
        parameters.push_back(p.name());
        EXPECT_DOUBLE_EQ(actual, 0.75);
      });
  t.apply(algorithm);
  EXPECT_EQ(targets, (std::vector<double>{0.75}));
  EXPECT_EQ(parameters, (std::vector<std::string>{"fc1.weight", "fc2.weight"}));
}

/// Prunes two rows and a column, and in its second update gives one of the rows back.
class Lines final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "lines"; }

 protected:
  MaskSet update_mask(const SparseWeight& weight, const MaskSet&, float) override {
    const int64_t rows = weight.shape()[0], columns = weight.shape()[1];
    BitMask mask = BitMask::zeros(rows * columns);
    for (int64_t i = 0; i < rows * columns; ++i) {
      if (i / columns >= (updates() == 0 ? 2 : 1) && i % columns != 5) mask.set(i);
    }
    return mask;
  }
};

/// Sets a mask itself, before it answers another one.
class TwoSteps final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "two_steps"; }

 protected:
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float) override {
    const std::vector<float> scores = weight.magnitudes().to_vector();
    const MaskSet fewer = weight.selector().keep(mask, scores, weight.target_nnz() / 4);
    set_mask(weights().front(), fewer);
    return weight.selector().keep(mask, scores, weight.target_nnz());
  }
};

TEST(UpdateMask, MaySetMasksItself) {
  TestModel t;
  TwoSteps algorithm(
      {.sparsity = 0.5, .param_filter = "fc1.weight", .update = UpdateSchedule::at_steps({1, 2})});
  t.apply(algorithm);
  for (int step = 0; step < 2; ++step) {
    t.step();
    EXPECT_EQ(t.weight().pattern()->nnz(), 96);
    EXPECT_EQ(t.weight().pattern()->mask().count(), 96);
  }
}

/// Its masks come from a function.
class Answering final : public DynamicSparsityAlgorithm {
 public:
  using Answer = std::function<MaskSet(const SparseWeight&, const MaskSet&)>;
  explicit Answering(Answer answer)
      : DynamicSparsityAlgorithm({.sparsity = 0.5, .param_filter = "fc1.weight"}),
        answer_(std::move(answer)) {}
  std::string_view type() const override { return "answering"; }

 protected:
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float) override {
    return answer_(weight, mask);
  }

 private:
  Answer answer_;
};

// As many positions, in another order.
TEST(UpdateMask, OfAnotherShapeIsRefused) {
  TestModel t;
  Answering algorithm([](const SparseWeight& weight, const MaskSet&) {
    return MaskSet::all(Shape{weight.shape()[1], weight.shape()[0]});
  });
  t.apply(algorithm);
  expect_throws<ShapeError>([&] { t.step(); }, "got a mask of shape");
}

TEST(UpdateMask, ScoresOfAnotherShapeAreRefused) {
  TestModel t;
  Answering algorithm([](const SparseWeight& weight, const MaskSet& mask) {
    const Tensor scores = Tensor::zeros(Shape{3});
    return weight.selector().grow_maximum(rows_of(scores), mask.count() + 8, mask);
  });
  t.apply(algorithm);
  expect_throws<ShapeError>([&] { t.step(); },
                            "an array of scores of shape [3] has rows of 1 value, found ");
}

TEST(UpdateRecords, CountRowsAndColumnsWithoutANonzero) {
  TestModel t;
  Lines algorithm({.param_filter = "fc1.weight", .update = UpdateSchedule::at_steps({1, 2})});
  t.apply(algorithm);
  t.step();
  ASSERT_EQ(algorithm.last_update().size(), 1u);
  MaskUpdate r = algorithm.last_update()[0];
  EXPECT_EQ(r.nnz, 14 * 11);
  EXPECT_EQ(r.dropped, 192 - 14 * 11);
  EXPECT_EQ(r.grown, 0);
  EXPECT_EQ(r.churn, 0.0);
  EXPECT_EQ(r.ever_active, 1.0);
  EXPECT_EQ(r.dead_rows, 2);
  EXPECT_EQ(r.dead_columns, 1);
  EXPECT_DOUBLE_EQ(r.actual_sparsity, 1.0 - 14.0 * 11.0 / 192.0);
  t.step();
  r = algorithm.last_update()[0];
  EXPECT_EQ(r.dead_rows, 1);
  EXPECT_EQ(r.grown, 11);
  EXPECT_DOUBLE_EQ(r.churn, 11.0 / 165.0);
  t.step();
  EXPECT_TRUE(algorithm.last_update().empty());
}

TEST(UpdateRecords, NameAWeightThatHasLostAllItsNonzeros) {
  TestModel t;
  Answering algorithm(
      [](const SparseWeight& weight, const MaskSet&) { return MaskSet(weight.shape()); });
  t.apply(algorithm);
  t.step();
  ASSERT_EQ(algorithm.last_update().size(), 1u);
  EXPECT_THAT(algorithm.last_update()[0].messages,
              ElementsAre("'fc1.weight' has lost all of its nonzeros (target: 96), so its outputs "
                          "are zero from now on"));
  t.step();  // once
  EXPECT_THAT(algorithm.last_update()[0].messages, IsEmpty());
}

TEST(StaticTest, NaNInAPrunedPositionsGradientDoesNotLeak) {
  TestModel t;
  Static algorithm({.sparsity = 0.5});
  t.apply(algorithm);
  t.forward_backward();
  Tensor poison = Tensor::zeros(Shape{16, 12});
  const BitMask mask = t.weight().pattern()->mask();
  for (int64_t i = 0; i < 192; ++i) {
    if (!mask.test(i)) poison.mutable_data()[i] = std::numeric_limits<float>::quiet_NaN();
  }
  t.weight().accumulate(poison);
  t.optimizer->step();
  for (const float value : t.weight().values().storage()) ASSERT_EQ(value, value);
  expect_zero_outside(t.weight());
}

}  // namespace
}  // namespace lacuna::algorithm_test
