// One-shot pruning to the sparsities that measured losses ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/sparsity/calibration/prune_layer.hpp"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/one_shot_pruning.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/static.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

const std::vector<double> kLevels = {0.25, 0.5, 0.75};

OneShotPruningOptions measured(OneShotMethod method, double sparsity) {
  OneShotPruningOptions options{.common = {.sparsity = sparsity},
                                .pruning = OneShotOptions::defaults(method)};
  options.common.distribution.kind = Distribution::Kind::Measured;
  options.common.distribution.levels = kLevels;
  options.common.layout = "masked";  // products as in a dense weight, to the bit
  return options;
}

CalibrationRun examples_of(const TestModel& t) {
  return [x = t.x](Module& model) { model(Variable(x)); };
}

CalibrationLoss loss_of(const TestModel& t) {
  return [x = t.x, labels = t.labels](Module& model) {
    const NoGrad no_grad;
    return static_cast<double>(cross_entropy(model(Variable(x)), labels).value().item());
  };
}

/// A model that has learnt its data.
struct Trained : TestModel {
  Trained() {
    for (int i = 0; i < 40; ++i) step();
  }
};

// The loss with each weight pruned alone, by definition; and the model is as it was.
TEST(MeasuredPruning, MeasuresTheLossOfEachWeightPrunedAlone) {
  Trained t;
  const CalibrationLoss loss = loss_of(t);
  const double before = loss(t.model);
  OneShotPruning wanda(measured(OneShotMethod::Wanda, 0.5));
  wanda.calibrate_with(examples_of(t), loss);
  t.apply(wanda);
  EXPECT_EQ(wanda.measured_losses(), nullptr);
  wanda.prune();
  ASSERT_NE(wanda.measured_losses(), nullptr);
  const LossTable& table = *wanda.measured_losses();
  EXPECT_EQ(table.loss, before);
  ASSERT_EQ(table.rows.size(), 2u);

  Trained other;
  InputGram gram(12);
  gram.add(other.x.storage());
  Parameter& fc1 = other.weight();
  const Tensor dense = fc1.to_dense().clone();
  for (size_t i = 0; i < kLevels.size(); ++i) {
    const auto keep = static_cast<int64_t>((1.0 - kLevels[i]) * 192.0);
    fc1.assign(prune_layer("fc1.weight", dense, {gram}, MaskSelector({}, {}, fc1.shape()), keep,
                           MaskSet::all(fc1.shape()),
                           OneShotOptions::defaults(OneShotMethod::Wanda))
                   .weight);
    EXPECT_EQ(table.rows[0].losses[i], loss(other.model)) << i;
  }
  EXPECT_EQ(table.rows[0].parameter, "fc1.weight");
  EXPECT_EQ(table.rows[0].shape, fc1.shape());
  EXPECT_EQ(table.rows[1].sparsities, kLevels);
}

// The counts are those of the table, and add up to what is asked for.
TEST(MeasuredPruning, PrunesToTheCountsOfLeastLoss) {
  for (const double sparsity : {0.3, 0.5, 0.7}) {
    Trained t;
    OneShotPruning algorithm(measured(OneShotMethod::SparseGpt, sparsity));
    algorithm.calibrate_with(examples_of(t), loss_of(t));
    t.apply(algorithm);
    algorithm.prune();
    Distribution distribution{Distribution::Kind::Measured};
    const std::vector<Shape> shapes = {t.weight().shape(), t.weight("fc2.weight").shape()};
    distribution.take_rows(*algorithm.measured_losses(), {"fc1.weight", "fc2.weight"}, shapes);
    const auto counts = distribute_nnz(distribution, static_cast<float>(sparsity), shapes);
    EXPECT_EQ(t.weight().pattern()->nnz(), counts[0]);
    EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), counts[1]);
    EXPECT_EQ(counts[0] + counts[1], target_nnz(static_cast<float>(sparsity), 256));
  }
}

TEST(MeasuredPruning, IsTheSameWithAnyNumberOfThreads) {
  const auto pruned = [](int threads) {
    set_num_threads(threads);
    Trained t;
    OneShotPruning algorithm(measured(OneShotMethod::Admm, 0.6));
    algorithm.calibrate_with(examples_of(t), loss_of(t));
    t.apply(algorithm);
    algorithm.prune();
    std::vector<float> all = whole(t.weight());
    const std::vector<float> second = whole(t.weight("fc2.weight"));
    all.insert(all.end(), second.begin(), second.end());
    return all;
  };
  const int before = num_threads();
  const std::vector<float> one = pruned(1);
  EXPECT_EQ(pruned(2), one);
  EXPECT_EQ(pruned(3), one);
  set_num_threads(before);
}

// Entries of a list are measured before any of them prunes, each for itself.
TEST(MeasuredPruning, MeasuresAllEntriesBeforeAnyPrunes) {
  Trained t;
  Group group;
  auto first = std::make_unique<OneShotPruning>(measured(OneShotMethod::Wanda, 0.5));
  auto second = std::make_unique<OneShotPruning>(measured(OneShotMethod::Magnitude, 0.5));
  OneShotPruning &a = *first, &b = *second;
  for (OneShotPruning* one : {&a, &b}) one->calibrate_with(examples_of(t), loss_of(t));
  group.add("fc1.weight", std::move(first));
  group.add("fc2.weight", std::move(second));
  t.apply(group);
  a.prune();
  EXPECT_EQ(a.measured_losses()->loss, b.measured_losses()->loss);
  EXPECT_EQ(b.measured_losses()->rows.size(), 1u);
  EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), 32);
}

TEST(MeasuredPruning, NeedsALossThatIsFinite) {
  Trained t;
  OneShotPruning without(measured(OneShotMethod::Wanda, 0.5));
  without.calibrate_with(examples_of(t));
  t.model.apply(without);
  expect_throws<StateError>([&] { without.prune(); },
                            "wanda: a measured distribution needs the loss");
  without.release();

  OneShotPruning broken(measured(OneShotMethod::Wanda, 0.5));
  broken.calibrate_with(examples_of(t),
                        [](Module&) { return std::numeric_limits<double>::quiet_NaN(); });
  t.model.apply(broken);
  expect_throws<ConfigError>([&] { broken.prune(); },
                             "wanda: the loss on the calibration examples is nan before pruning");
  broken.release();

  const std::vector<float> before = whole(t.weight());
  int calls = 0;
  OneShotPruning later(measured(OneShotMethod::Wanda, 0.5));
  later.calibrate_with(examples_of(t), [&](Module&) {
    return ++calls < 3 ? 1.0 : std::numeric_limits<double>::infinity();
  });
  t.model.apply(later);
  expect_throws<ConfigError>([&] { later.prune(); }, "is inf when 'fc1.weight' is pruned to 0.5");
  EXPECT_EQ(whole(t.weight()), before);  // and it has its values back
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
}

TEST(MeasuredPruning, RefusesABudgetThatNoLevelReaches) {
  Trained t;
  OneShotPruning algorithm(measured(OneShotMethod::Wanda, 0.9));
  algorithm.calibrate_with(examples_of(t), loss_of(t));
  t.model.apply(algorithm);
  expect_throws<ConfigError>([&] { algorithm.prune(); },
                             "the largest that can be reached is 0.75; measure at higher `levels`");
}

// Other algorithms take a table, and give their first masks its counts.
TEST(MeasuredPruning, GivesItsTableToOtherAlgorithms) {
  Trained t;
  OneShotPruning wanda(measured(OneShotMethod::Wanda, 0.6));
  wanda.calibrate_with(examples_of(t), loss_of(t));
  t.apply(wanda);
  wanda.prune();

  TestModel fresh;
  SparsityOptions options{.sparsity = 0.6};
  options.distribution.kind = Distribution::Kind::Measured;
  Static without(options);
  expect_throws<ConfigError>([&] { fresh.model.apply(without); },
                             "static: it measures no losses; give distribution: {type: measured");
  options.distribution.table = std::make_shared<LossTable>(*wanda.measured_losses());
  Static taken(options);
  fresh.model.apply(taken);
  EXPECT_EQ(fresh.weight().pattern()->nnz(), t.weight().pattern()->nnz());
  EXPECT_EQ(fresh.weight("fc2.weight").pattern()->nnz(), t.weight("fc2.weight").pattern()->nnz());

  options.sparsity = SparsityTarget::density(0.4);
  expect_throws<ConfigError>([&] { Static{options}; }, "in the place of density or fan_in");
}

}  // namespace
}  // namespace lacuna
