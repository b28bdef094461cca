#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/sparsity/gmp.h"
#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/selection.h"
#include "lacuna/sparsity/set.h"
#include "lacuna/sparsity/static.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna {
namespace {

void expect_zero_outside(const Parameter& parameter) {
  const ByteArray mask = parameter.mask();
  std::vector<std::vector<float>> arrays{whole(parameter)};
  for (const auto& [name, slot] : parameter.slots()) {
    arrays.push_back(whole(parameter, slot.values));
  }
  for (const std::vector<float>& array : arrays) {
    for (size_t i = 0; i < mask.values.size(); ++i) {
      ASSERT_TRUE(mask.values[i] != 0 || array[i] == 0.0f) << parameter.name();
    }
  }
}

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

TEST(StaticTest, RefusesWhatIsNoConstantBelowOne) {
  expect_throws<ConfigError>([] { Static({.sparsity = 1.0}); }, "must be in [0, 1), found 1");
  expect_throws<ConfigError>(
      [] {
        Static({.sparsity = Schedule::from_config(Config::list({0.1, 0.2}))});
      },
      "must be a constant");
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
      "the sparsity state of 'fc1.weight' has shape [2, 2], the parameter [16, 12]");
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

TEST(SetTest, NnzIsConstantAndSurvivorsKeepTheirState) {
  TestModel t;
  Set algorithm(
      {.sparsity = 0.7, .update = UpdateSchedule::every(2), .drop_fraction = Schedule(0.4)});
  t.apply(algorithm);
  const int64_t nnz = t.weight().pattern()->nnz();
  int updates = 0;
  for (int i = 0; i < 10; ++i) {
    // The same step without the update shows what survivors must keep.
    t.forward_backward();
    algorithm.autoupdate = false;
    t.optimizer->step();
    const BitMask before = t.weight().pattern()->mask();
    const std::vector<float> values = whole(t.weight());
    const std::vector<float> moments = whole(t.weight(), t.weight().slots().at("exp_avg").values);
    algorithm.update(*t.optimizer);
    const BitMask after = t.weight().pattern()->mask();
    EXPECT_EQ(after.count(), nnz);
    updates += before == after ? 0 : 1;
    const std::vector<float> moved = whole(t.weight());
    const std::vector<float> moved_moments =
        whole(t.weight(), t.weight().slots().at("exp_avg").values);
    for (int64_t p = 0; p < after.size(); ++p) {
      const auto q = static_cast<size_t>(p);
      const bool survivor = before.test(p) && after.test(p);
      ASSERT_EQ(moved[q], survivor ? values[q] : 0.0f);
      ASSERT_EQ(moved_moments[q], survivor ? moments[q] : 0.0f);
    }
    t.optimizer->zero_grad();
  }
  EXPECT_EQ(updates, 5);
}

TEST(SetTest, UpdateRecordsAddUp) {
  TestModel t;
  Set algorithm(
      {.sparsity = 0.7, .update = UpdateSchedule::every(3), .drop_fraction = Schedule(0.5)});
  t.apply(algorithm);
  t.step();
  EXPECT_TRUE(algorithm.last_update().empty());
  const BitMask before = t.weight().pattern()->mask();
  t.step();
  t.step();
  const std::vector<MaskUpdate> records = algorithm.last_update();
  ASSERT_EQ(records.size(), 2u);
  const MaskUpdate& r = records[0];
  EXPECT_EQ(r.parameter, "fc1.weight");
  EXPECT_EQ(r.nnz, before.count());
  EXPECT_EQ(r.dropped, r.grown);
  EXPECT_GT(r.grown, 0);
  EXPECT_DOUBLE_EQ(r.churn, static_cast<double>(r.grown) / static_cast<double>(r.nnz));
  EXPECT_DOUBLE_EQ(r.ever_active.value(), static_cast<double>(r.nnz + r.grown) / 192.0);
  EXPECT_NEAR(r.actual_sparsity, r.target_sparsity, 1.0 / 192);
}

/// Prunes two rows and a column, and in its second update gives one of the rows back.
class Lines final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "lines"; }

 protected:
  BitMask update_mask(const Parameter& parameter, const BitMask&, float) override {
    const int64_t rows = parameter.shape()[0], columns = parameter.shape()[1];
    BitMask mask = BitMask::zeros(rows * columns);
    for (int64_t i = 0; i < rows * columns; ++i) {
      if (i / columns >= (updates() == 0 ? 2 : 1) && i % columns != 5) mask.set(i);
    }
    return mask;
  }
};

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

TEST(RigLTest, KeepsItsMaskWhereNothingIsDropped) {
  TestModel t;
  RigL algorithm(
      {.sparsity = 0.7, .update = UpdateSchedule::every(1), .drop_fraction = Schedule(0.0)});
  t.apply(algorithm);
  const BitMask before = t.weight().pattern()->mask();
  t.step();  // nothing is dropped, so nothing grows
  EXPECT_TRUE(t.weight().pattern()->mask() == before);
}

TEST(RigLTest, NeedsADenseGradientThatWasAskedFor) {
  TestModel t;
  RigL algorithm({.sparsity = 0.7, .update = UpdateSchedule::every(1)});
  t.apply(algorithm);
  algorithm.autoupdate = false;
  expect_throws<StateError>([&] { algorithm.update(*t.optimizer); },
                            "needs the dense gradient of 'fc1.weight' at step 1");
}

TEST(RigLTest, MicroBatchesAddUpToTheWholeBatch) {
  const auto masks = [](bool split) {
    TestModel t;
    RigL algorithm(
        {.sparsity = 0.8, .update = UpdateSchedule::every(1), .drop_fraction = Schedule(0.5)});
    t.apply(algorithm);
    for (int i = 0; i < 4; ++i) {
      const auto part = [&](int64_t begin, int64_t count) {
        const Tensor x =
            Tensor::from(Shape{count, 12}, t.x.storage().subspan(static_cast<size_t>(begin * 12),
                                                                 static_cast<size_t>(count * 12)));
        const auto all = t.labels.values();
        const IndexTensor labels(Shape{count}, {all.begin() + begin, all.begin() + begin + count});
        const Variable loss = cross_entropy(t.model(Variable(x)), labels);
        backward(loss, Tensor::scalar(static_cast<float>(count) / 20.0f));
      };
      if (split) {
        part(0, 12);
        part(12, 8);
      } else {
        part(0, 20);
      }
      t.optimizer->step();
      t.optimizer->zero_grad();
    }
    return t.weight().pattern()->mask();
  };
  EXPECT_TRUE(masks(true) == masks(false));
}

TEST(GmpTest, PrunesToTheTargetAndNeverRegrows) {
  TestModel t;
  const Config schedule = Config::map(
      {{"type", "polynomial"}, {"init", 0.0}, {"final", 0.9}, {"start", 0}, {"end", 8}});
  Gmp algorithm({.sparsity = Schedule::from_config(schedule), .update = UpdateSchedule::every(2)});
  t.apply(algorithm);
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
  BitMask before = t.weight().pattern()->mask();
  for (int i = 0; i < 10; ++i) {
    t.step();
    const BitMask after = t.weight().pattern()->mask();
    after.for_each([&](int64_t p) { EXPECT_TRUE(before.test(p)); });
    before = after;
    expect_zero_outside(t.weight());
  }
  EXPECT_EQ(before.count(), target_nnz(0.9f, 192));
}

TEST(GmpTest, RefusesAConstantAndADropFraction) {
  expect_throws<ConfigError>([] { Gmp({.sparsity = 0.9}); }, "use algorithm 'static'");
  expect_throws<ConfigError>([] { Gmp({.sparsity = 0.9, .drop_fraction = Schedule(0.3)}); },
                             "takes no drop_fraction");
}

TEST(DynamicTest, StartsFullUnlessStepZeroIsAnUpdate) {
  TestModel t;
  Set late({.sparsity = 0.5, .update = UpdateSchedule::every(4, 2)});
  t.apply(late);
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
  t.step();
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
  t.step();
  EXPECT_LT(t.weight().pattern()->nnz(), 192);
}

TEST(DynamicTest, StopIsExclusive) {
  TestModel t;
  Set algorithm(
      {.sparsity = 0.5, .update = UpdateSchedule::every(2, 0, 4), .drop_fraction = Schedule(0.5)});
  t.apply(algorithm);
  int updates = 0;
  for (int i = 0; i < 8; ++i) {
    t.step();
    updates += algorithm.last_update().empty() ? 0 : 1;
  }
  EXPECT_EQ(updates, 1);  // at step 2 alone
}

TEST(DynamicTest, StateResumesWithTheSameTopology) {
  const DynamicOptions options{
      .sparsity = 0.7, .update = UpdateSchedule::every(2), .drop_fraction = Schedule(0.5)};
  TestModel straight_through;
  RigL straight(options);
  straight_through.apply(straight);
  TestModel first, second;
  RigL before(options), after(options);
  first.apply(before);
  for (int i = 0; i < 3; ++i) {
    straight_through.step();
    first.step();
  }
  second.apply(after);
  second.model.load_state_dict(first.model.state_dict());
  second.optimizer->load_state_dict(first.optimizer->state_dict());
  after.load_state_dict(before.state_dict());
  for (int i = 0; i < 5; ++i) {  // to step 8, an update step
    straight_through.step();
    second.step();
  }
  ASSERT_FALSE(straight.last_update().empty());
  EXPECT_TRUE(straight_through.weight().pattern()->mask() == second.weight().pattern()->mask());
  EXPECT_EQ(straight_through.weight().to_dense().to_vector(),
            second.weight().to_dense().to_vector());
  EXPECT_EQ(straight.last_update()[0].ever_active, after.last_update()[0].ever_active);
  Set other({.sparsity = 0.7});
  TestModel third;
  third.apply(other);
  expect_throws<CheckpointError>(
      [&] { other.load_state_dict(before.state_dict()); },
      "holds the state of sparsity algorithm 'rigl', the run uses 'set'");
}

TEST(DynamicTest, NaNInAPrunedPositionsGradientDoesNotLeak) {
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
}  // namespace lacuna
