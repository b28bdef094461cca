// One-shot pruning as an algorithm: what it calibrates on, when it prunes, and what it keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "lacuna/sparsity/calibration/prune_layer.hpp"
#include "lacuna/sparsity/gmp.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/one_shot_pruning.h"
#include "lacuna/sparsity/phases.h"
#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/static.h"
#include "random_values.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::one_shot_pruning_test {
namespace {

OneShotPruningOptions of(OneShotMethod method, double sparsity) {
  return {.common = {.sparsity = sparsity}, .pruning = OneShotOptions::defaults(method)};
}

/// Two batches of the test model's inputs.
CalibrationRun batches_of(const TestModel& t) {
  return [x = t.x](Module& model) {
    for (int64_t i = 0; i < 2; ++i) {
      model(
          Variable(Tensor::from({10, 12}, x.storage().subspan(static_cast<size_t>(i) * 120, 120))));
    }
  };
}

InputGram gram_of(const Tensor& rows) {
  InputGram gram(rows.shape().features());
  gram.add(rows.to(Order::RowMajor).storage());
  return gram;
}

/// relu(x Wᵀ + b), by definition.
Tensor hidden(const Tensor& x, const Parameter& weight, const Parameter& bias) {
  const Tensor w = weight.to_dense(), b = bias.to_dense();
  Tensor y = Tensor::zeros({x.shape()[0], w.shape()[0]});
  for (int64_t i = 0; i < x.shape()[0]; ++i) {
    for (int64_t o = 0; o < w.shape()[0]; ++o) {
      double sum = b.data()[o];
      for (int64_t k = 0; k < w.shape()[1]; ++k) {
        sum += x.data()[i * w.shape()[1] + k] * w.data()[o * w.shape()[1] + k];
      }
      y.mutable_data()[i * w.shape()[0] + o] = static_cast<float>(std::max(sum, 0.0));
    }
  }
  return y;
}

MaskSet mask_of(const Parameter& parameter) { return MaskSet(parameter.pattern()); }

void expect_near(const Tensor& a, const Tensor& b, float tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.numel(); ++i) ASSERT_NEAR(a.data()[i], b.data()[i], tolerance) << i;
}

class EveryMethod : public testing::TestWithParam<OneShotMethod> {};

// Layer by layer: the second by the inputs that the pruned first gives.
TEST_P(EveryMethod, PrunesEachLayerByWhatThePrunedOnesBeforeGive) {
  TestModel t;
  const Tensor first = t.weight("fc1.weight").to_dense(),
               second = t.weight("fc2.weight").to_dense();
  OneShotPruning algorithm(of(GetParam(), 0.5));
  algorithm.calibrate_with(batches_of(t));
  t.apply(algorithm);
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);  // until it prunes
  algorithm.prune();
  const OneShotOptions options = OneShotOptions::defaults(GetParam());
  const auto expect = [&](const char* name, const Tensor& before, const Tensor& inputs) {
    const MaskSelector selector({}, {}, before.shape());
    const PrunedWeight expected = prune_one_shot(name, before, gram_of(inputs), selector,
                                                 before.numel() / 2, nullptr, options);
    EXPECT_EQ(mask_of(t.weight(name)), expected.mask) << name;
    expect_near(t.weight(name).to_dense(), expected.weight, 1e-5f);
  };
  expect("fc1.weight", first, t.x);
  expect("fc2.weight", second, hidden(t.x, t.weight("fc1.weight"), t.weight("fc1.bias")));
  ASSERT_EQ(algorithm.pruned().size(), 2u);
  EXPECT_EQ(algorithm.pruned()[0].parameter, "fc1.weight");
  EXPECT_GT(algorithm.pruned()[0].relative_error.value_or(0.0), 0.0);
  expect_zero_outside(t.weight());
}

TEST_P(EveryMethod, PrunesAtTheFirstTrainingStepAndKeepsTheMask) {
  TestModel t;
  OneShotPruning algorithm(of(GetParam(), 0.75));
  algorithm.calibrate_with(batches_of(t));
  t.apply(algorithm);
  {
    const NoGrad no_grad;  // an evaluation prunes nothing
    t.model(Variable(t.x));
  }
  EXPECT_TRUE(algorithm.pruned().empty());
  t.step();
  EXPECT_EQ(algorithm.pruned().size(), 2u);
  EXPECT_EQ(algorithm.last_update().size(), 2u);
  const MaskSet mask = mask_of(t.weight());
  EXPECT_EQ(mask.count(), 48);
  for (int i = 0; i < 3; ++i) t.step();
  EXPECT_TRUE(algorithm.last_update().empty());
  EXPECT_EQ(mask_of(t.weight()), mask);
  expect_zero_outside(t.weight());
}

TEST_P(EveryMethod, FollowsAPattern) {
  TestModel t;
  OneShotPruningOptions options = of(GetParam(), 0.0);
  options.common.pattern = PatternShape::nm(2, 4);
  OneShotPruning algorithm(std::move(options));
  algorithm.calibrate_with(batches_of(t));
  t.model.apply(algorithm);
  algorithm.prune();
  const MaskSelector selector({}, PatternShape::nm(2, 4), t.weight().shape());
  EXPECT_EQ(selector.fit(mask_of(t.weight())), MaskSelector::Fit::Whole);
  EXPECT_EQ(t.weight().pattern()->nnz(), 96);
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod,
                         testing::Values(OneShotMethod::Magnitude, OneShotMethod::Wanda,
                                         OneShotMethod::SparseGpt, OneShotMethod::Admm),
                         [](const auto& test) { return to_string(test.param); });

TEST(OneShotPruningTest, MagnitudeNeedsNoExamplesAndOthersSayHowToGiveThem) {
  TestModel t, other;
  OneShotPruning magnitude(of(OneShotMethod::Magnitude, 0.5));
  t.model.apply(magnitude);
  magnitude.prune();
  EXPECT_EQ(t.weight().pattern()->nnz(), 96);
  OneShotPruning wanda(of(OneShotMethod::Wanda, 0.5));
  other.apply(wanda);
  expect_throws<StateError>([&] { other.step(); }, "call calibrate_with");
  wanda.calibrate_with([](Module&) {});
  expect_throws<StateError>([&] { wanda.prune(); }, "has not called the module");
}

TEST(OneShotPruningTest, RefusesToPruneBeforeItIsApplied) {
  OneShotPruning wanda(of(OneShotMethod::Wanda, 0.5));
  expect_throws<StateError>([&] { wanda.prune(); }, "must be applied to a model");
}

TEST(OneShotPruningTest, LeavesEachModulesModeAndTheOptimizersStatesAligned) {
  TestModel t;
  for (int i = 0; i < 2; ++i) t.step();
  t.model.modules().back()->eval();  // fc2 alone
  OneShotPruning wanda(of(OneShotMethod::Wanda, 0.5));
  wanda.calibrate_with(batches_of(t));
  t.apply(wanda);
  t.step();
  EXPECT_TRUE(t.model.training());
  EXPECT_FALSE(t.model.modules().back()->training());
  expect_zero_outside(t.weight());
}

// A group prunes in one order of the forward pass, whichever entry a layer is of.
TEST(OneShotPruningTest, EntriesOfAGroupPruneInOneOrder) {
  TestModel t;
  Group group;
  OneShotPruning* last = nullptr;
  for (const char* name : {"fc2.weight", "fc1.weight"}) {
    auto wanda = std::make_unique<OneShotPruning>(of(OneShotMethod::Wanda, 0.5));
    wanda->calibrate_with(batches_of(t));
    if (last == nullptr) last = wanda.get();
    group.add(ParameterFilter({name}), std::move(wanda));
  }
  const Tensor second = t.weight("fc2.weight").to_dense();
  t.apply(group);
  t.step();
  const MaskSelector selector({}, {}, second.shape());
  ASSERT_EQ(last->pruned().size(), 1u);
  EXPECT_EQ(group.last_update().size(), 2u);
  TestModel twin;  // fc1 pruned as above, by a run of its own
  OneShotPruning first(of(OneShotMethod::Wanda, 0.5));
  first.calibrate_with(batches_of(twin));
  twin.model.apply(first);
  first.prune();
  EXPECT_EQ(mask_of(t.weight("fc2.weight")), mask_of(twin.weight("fc2.weight")));
}

TEST(OneShotPruningTest, PhasesGoOnFromItsMasks) {
  TestModel t;
  const auto one_shot = [&](double sparsity) {
    auto algorithm = std::make_unique<OneShotPruning>(of(OneShotMethod::SparseGpt, sparsity));
    algorithm->calibrate_with(batches_of(t));
    return algorithm;
  };
  std::vector<Phase> phases;
  phases.push_back({one_shot(0.5), 2});
  phases.push_back({std::make_unique<Static>(SparsityOptions{.sparsity = 0.5}), 4});
  phases.push_back({one_shot(0.75), 6});
  DynamicOptions rigl{.sparsity = 0.75, .update = UpdateSchedule::every(1)};
  rigl.drop_fraction = Schedule(0.5);
  phases.push_back({std::make_unique<RigL>(std::move(rigl)), std::nullopt});
  Phases plan(std::move(phases));
  t.apply(plan);
  t.step();
  const MaskSet half = mask_of(t.weight());
  EXPECT_EQ(half.count(), 96);
  for (int i = 0; i < 3; ++i) t.step();
  EXPECT_EQ(mask_of(t.weight()), half);  // the next phase has begun, and not pruned yet
  t.step();
  const MaskSet quarter = mask_of(t.weight());
  EXPECT_EQ(quarter.count(), 48);
  EXPECT_EQ(count_common(quarter, half), 48);
  t.step();
  t.step();
  EXPECT_EQ(plan.current(), 3u);
  EXPECT_EQ(t.weight().pattern()->nnz(), 48);
  EXPECT_FALSE(mask_of(t.weight()) == quarter);
}

TEST(OneShotPruningTest, APlanThatPrunesLessThanIsPrunedIsRefused) {
  TestModel t;
  std::vector<Phase> phases;
  phases.push_back({std::make_unique<OneShotPruning>(of(OneShotMethod::Magnitude, 0.8)), 2});
  phases.push_back({std::make_unique<OneShotPruning>(of(OneShotMethod::Magnitude, 0.5)), {}});
  Phases plan(std::move(phases));
  t.apply(plan);
  expect_throws<ConfigError>([&] { plan.plan(10); }, "pruned weights stay pruned");
}

TEST(OneShotPruningTest, ThePlanForeseesWhatItDoes) {
  TestModel t;
  OneShotPruning wanda(of(OneShotMethod::Wanda, 0.75));
  wanda.calibrate_with(batches_of(t));
  t.apply(wanda);
  const std::vector<PlannedParameter> plan = wanda.plan(10);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].algorithm, "wanda");
  EXPECT_EQ(plan[0].initial_nnz, 192);
  EXPECT_EQ(plan[0].final_nnz, 48);
  EXPECT_EQ(plan[0].update_steps, std::vector<int64_t>{1});
}

TEST(OneShotPruningTest, ASavedStateSaysThatItHasPruned) {
  TestModel t, resumed;
  OneShotPruning wanda(of(OneShotMethod::Wanda, 0.5)), again(of(OneShotMethod::Wanda, 0.5));
  wanda.calibrate_with(batches_of(t));
  t.apply(wanda);
  t.step();
  again.calibrate_with([](Module&) { FAIL() << "it calibrates again"; });
  resumed.apply(again);
  resumed.model.load_state_dict(t.model.state_dict());
  again.load_state_dict(wanda.state_dict());
  resumed.optimizer->load_state_dict(t.optimizer->state_dict());
  t.step();
  resumed.step();
  EXPECT_EQ(whole(t.weight()), whole(resumed.weight()));
}

TEST(OneShotPruningTest, LeastSquaresLowersTheErrorOfAnyMask) {
  TestModel t, fitted;
  OneShotPruning plain(of(OneShotMethod::Wanda, 0.5));
  OneShotPruningOptions options = of(OneShotMethod::Wanda, 0.5);
  options.pruning.least_squares = true;
  OneShotPruning least_squares(std::move(options));
  for (auto [algorithm, model] : {std::pair(&plain, &t), std::pair(&least_squares, &fitted)}) {
    algorithm->calibrate_with(batches_of(*model));
    model->model.apply(*algorithm);
    algorithm->prune();
  }
  EXPECT_LT(*least_squares.pruned()[0].relative_error, 0.8 * *plain.pruned()[0].relative_error);
}

/// A weight that the forward pass never multiplies by, and one that is no matrix of a layer.
class WithUnused final : public Module {
 public:
  WithUnused() {
    register_module(
        "fc", std::make_unique<Linear>(Linear::Options{.in_features = 12, .out_features = 4}));
    register_module(
        "unused", std::make_unique<Linear>(Linear::Options{.in_features = 12, .out_features = 4}));
    table_ = register_parameter("table",
                                std::make_shared<Parameter>(Shape{6, 4}, Initializer::normal(1.0)));
  }
  std::string_view type() const override { return "with_unused"; }

 protected:
  Variable forward(const Variable& x) override { return (*children()[0].second)(x); }

 private:
  ParameterPtr table_;
};

TEST(OneShotPruningTest, NamesWeightsThatNoForwardPassMultipliesWith) {
  WithUnused model;
  OneShotPruning wanda(of(OneShotMethod::Wanda, 0.5)), magnitude(of(OneShotMethod::Magnitude, 0.5));
  for (OneShotPruning* one : {&wanda, &magnitude}) {
    one->calibrate_with([](Module& m) { m(Variable(random_tensor({5, 12}, "x"))); });
  }
  model.apply(wanda);
  expect_throws<ConfigError>([&] { wanda.prune(); }, "never multiplies by 'unused.weight'");
  wanda.release();
  model.apply(magnitude);
  magnitude.prune();
  EXPECT_EQ(model.parameter("unused.weight")->pattern()->nnz(), 24);
}

TEST(OneShotPruningTest, NamesParametersThatItDoesNotFit) {
  WithUnused model;
  OneShotPruningOptions options = of(OneShotMethod::SparseGpt, 0.5);
  options.common.param_filter = ParameterFilter({"table"});
  OneShotPruning sparse_gpt(std::move(options));
  expect_throws<ConfigError>([&] { model.apply(sparse_gpt); }, "does not fit 'table'");
}

TEST(OneShotPruningTest, RefusesWhatItCannotDo) {
  OneShotPruningOptions schedule = of(OneShotMethod::Wanda, 0.0);
  schedule.common.sparsity = Schedule::from_config(Config::list({0.1, 0.2}));
  expect_throws<ConfigError>([&] { OneShotPruning{schedule}; }, "must be a constant");
  expect_throws<ConfigError>([] { OneShotPruning{of(OneShotMethod::Admm, 1.0)}; }, "in [0, 1)");
  OneShotPruningOptions groups = of(OneShotMethod::SparseGpt, 0.5);
  groups.common.groups = ScoreGroups::rows(2);
  expect_throws<ConfigError>([&] { OneShotPruning{groups}; }, "balance_in_groups");
  OneShotPruningOptions many = of(OneShotMethod::Wanda, 0.5);
  many.calibration.examples = 100;
  OneShotPruning wanda(many);
  expect_throws<ConfigError>([&] { wanda.calibrate_on({.examples = 60, .run = nullptr}); },
                             "calibration needs 100 examples, and the training data has 60");
}

// What is not given is written into the resolved configuration, automatic or not.
TEST(OneShotPruningTest, DampingIsANumberOrAutomatic) {
  constexpr double kAutomatic = OneShotOptions::kAutomaticDamping;
  const auto read = [](OneShotMethod method, const Config& entry) {
    return OneShotPruningOptions::from_config(entry, method, 0).pruning.damping;
  };
  const auto entry = [](const Config& damping) {
    return Config::map({{"sparsity", 0.5}, {"damping", damping}});
  };
  Config bare = Config::map({{"sparsity", 0.5}});
  EXPECT_EQ(read(OneShotMethod::SparseGpt, bare), kAutomatic);
  EXPECT_EQ(bare.required<std::string>("damping"), "auto");
  bare = Config::map({{"sparsity", 0.5}});
  EXPECT_EQ(read(OneShotMethod::Admm, bare), 0.1);
  EXPECT_EQ(bare.required<double>("damping"), 0.1);
  for (const OneShotMethod method : {OneShotMethod::SparseGpt, OneShotMethod::Admm}) {
    EXPECT_EQ(read(method, entry("auto")), kAutomatic);
    EXPECT_EQ(read(method, entry(0.01)), 0.01);
    EXPECT_EQ(read(method, entry(0)), 0.0);
    expect_throws<ConfigError>([&] { read(method, entry(-1.0)); }, "damping: expected a number");
    expect_throws<ConfigError>([&] { read(method, entry("some")); },
                               "damping: expected a number from 0, or auto, found 'some'");
  }
}

}  // namespace
}  // namespace lacuna::one_shot_pruning_test
