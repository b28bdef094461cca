// What a plan foresees, and what it refuses because it can only be a mistake.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::plan_test {
namespace {

std::unique_ptr<SparsityAlgorithm> from_yaml(const std::string& yaml) {
  register_builtins();
  return configure(parse_yaml(yaml, "c.yaml"), 0);
}

/// The plan's last counts are what training really ends with, and its mean is that of the steps,
/// each by its own weight. After each of its update steps the update is reported.
void expect_foreseen(const std::string& yaml, int steps) {
  TestModel t;
  const auto algorithm = from_yaml(yaml);
  t.apply(*algorithm);
  const std::vector<PlannedParameter> plan = algorithm->plan(steps);
  ASSERT_FALSE(plan.empty());
  std::map<std::string, std::vector<const PlannedParameter*>> entries;
  for (const PlannedParameter& entry : plan) entries[entry.parameter].push_back(&entry);
  const auto nnz = [&](const std::string& parameter) {
    return t.weight(parameter.c_str()).pattern()->nnz();
  };
  const auto examples = [](int64_t step) { return static_cast<double>(step * step); };
  std::map<std::string, double> sums;
  std::map<std::string, std::set<int64_t>> updates;
  for (int i = 0; i < steps; ++i) {
    for (const auto& [parameter, of_it] : entries) {
      sums[parameter] += static_cast<double>(nnz(parameter)) * (examples(i + 1) - examples(i));
    }
    t.step();
    for (const MaskUpdate& update : algorithm->last_update()) {
      updates[update.parameter].insert(i + 1);
    }
  }
  for (const PlannedParameter& entry : plan) {
    for (const int64_t step : entry.update_steps) {
      EXPECT_TRUE(updates[entry.parameter].contains(step)) << yaml << " " << step;
    }
  }
  for (const auto& [parameter, of_it] : entries) {
    EXPECT_EQ(nnz(parameter), of_it.back()->final_nnz) << yaml << " " << parameter;
    EXPECT_DOUBLE_EQ(mean_nnz(of_it, steps, examples), sums[parameter] / examples(steps))
        << yaml << " " << parameter;
  }
}

TEST(PlanTest, ForeseesWhatTrainingEndsWith) {
  expect_foreseen("{algorithm: static, sparsity: 0.7}", 3);
  expect_foreseen("{algorithm: static, sparsity: 0.7, distribution: erk}", 3);
  expect_foreseen("{algorithm: set, sparsity: 0.7, update: {freq: 2}}", 9);
  expect_foreseen("{algorithm: rigl, sparsity: 0.7, update: {freq: 2}, balance_in_groups: 4}", 9);
  // From a full mask the drop fraction limits how fast it becomes sparse.
  expect_foreseen("{algorithm: rigl, sparsity: 0.9, update: {freq: 2, start: 3}}", 8);
  expect_foreseen("{algorithm: set, sparsity: [0.9, 0.5, 0.7], update: {freq: 2}}", 9);
  expect_foreseen(
      "{algorithm: gmp, sparsity: {type: polynomial, init: 0, final: 0.9, start: 0, end: 6}, "
      "update: {freq: 2}}",
      9);
  expect_foreseen("{algorithm: gmp, sparsity: {type: linear, init: 0, slope: 0.05}}", 9);
  expect_foreseen("{algorithm: acdc, sparsity: 0.75, update: {freq: 3}}", 10);
  expect_foreseen("{algorithm: snip, sparsity: 0.75, scope: layer}", 2);
  expect_foreseen("{algorithm: snip, sparsity: 0.75, scope: layer, distribution: erk}", 2);
  expect_foreseen("{algorithm: snip, sparsity: 0.7, pattern: {type: block, rows: 4, cols: 2}}", 2);
  expect_foreseen("{algorithm: ste, sparsity: 0.75, update: {freq: 3}}", 9);
  expect_foreseen("{algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}}", 4);
}

TEST(PlanTest, ForeseesThroughPhasesAndGroups) {
  expect_foreseen(
      "{phases: [{until: 3, algorithm: dense, param_filter: fc1.weight}, "
      "{until: 6, algorithm: static, sparsity: 0.5}, "
      "{algorithm: set, sparsity: 0.75, update: {freq: 2}, param_filter: fc2.weight}]}",
      11);
  expect_foreseen(
      "{phases: [{until: 5, algorithm: gmp, update: {freq: 1}, "
      "sparsity: {type: polynomial, init: 0.2, final: 0.8, start: 0, end: 5}}, "
      "{until: 9, algorithm: dense}, {algorithm: static, sparsity: 0.9}]}",
      12);
  expect_foreseen(
      "[{algorithm: acdc, sparsity: 0.6, update: {freq: 2}, param_filter: fc1.weight}, "
      "{algorithm: rigl, sparsity: 0.8, update: {freq: 3}, param_filter: fc2.weight}]",
      10);
}

TEST(PlanTest, SchedulesReachTheirEndValue) {
  TestModel t;
  const auto algorithm = from_yaml(
      "{algorithm: gmp, sparsity: {type: polynomial, init: 0.1, final: 0.75, start: 0, end: 6}, "
      "update: {freq: 3}}");
  t.apply(*algorithm);
  for (int i = 0; i < 6; ++i) t.step();
  EXPECT_EQ(t.weight().pattern()->nnz(), 48);
}

void expect_refused(const std::string& yaml, int steps, const std::string& words) {
  TestModel t;
  const auto algorithm = from_yaml(yaml);
  t.apply(*algorithm);
  expect_throws<ConfigError>([&] { algorithm->plan(steps); }, words);
}

TEST(PlanTest, RefusesZeroUpdates) {
  expect_refused("{algorithm: set, sparsity: 0.5, update: {freq: 100}}", 99,
                 "set: no update falls within its 99 steps; check update.freq, start and stop");
  expect_refused("{algorithm: set, sparsity: 0.5, update: {steps: [0, 7]}}", 6, "no update falls");
}

TEST(PlanTest, RefusesASparsityScheduleThatHasNotEnded) {
  expect_refused(
      "{algorithm: gmp, sparsity: {type: polynomial, init: 0, final: 0.9, start: 0, end: 11}, "
      "update: {freq: 5}}",
      12, "(polynomial) ends at step 11, after the last update at step 10");
  expect_refused(
      "{algorithm: gmp, sparsity: {type: cosine, init: 0.1, minimum: 0.9, half_period: 40}, "
      "update: {freq: 5}}",
      12, "(cosine) ends at step 40, after the last update at step 10");
  expect_refused(
      "{algorithm: gmp, sparsity: {type: cosine_once, init: 0.1, minimum: 0.9, half_period: 8, "
      "start: 3}, update: {freq: 5}}",
      12, "(cosine_once) ends at step 11, after the last update at step 10");
}

TEST(PlanTest, RefusesADropFractionThatRisesAgain) {
  expect_refused(
      "{algorithm: rigl, sparsity: 0.5, update: {freq: 5}, "
      "drop_fraction: {type: cosine, init: 0.3, half_period: 8}}",
      12, "rises again after its half_period of 8 steps, but updates continue until step 10");
  expect_refused(
      "{algorithm: set, sparsity: 0.5, drop_fraction: {type: Cosine, init: 0.3, half_period: 8}}",
      12, "rises again after its half_period of 8 steps, but updates continue until step 12");
  TestModel t;
  const auto good = from_yaml(
      "{algorithm: rigl, sparsity: 0.5, update: {freq: 5, stop: 8}, "
      "drop_fraction: {type: cosine, init: 0.3, half_period: 8}}");
  t.apply(*good);
  EXPECT_EQ(good->plan(12)[0].update_steps, (std::vector<int64_t>{5}));
}

TEST(PlanTest, RefusesADropFractionThatIsNone) {
  expect_refused(
      "{algorithm: rigl, sparsity: 0.5, update: {freq: 2}, drop_fraction: [0.3, 0.2, 2]}", 9,
      "rigl: the drop_fraction is 2.0 at step 4, expected a fraction from 0 to 1");
  expect_refused(
      "{algorithm: set, sparsity: 0.5, drop_fraction: {type: linear, init: 0.1, slope: -0.1}}", 9,
      "set: the drop_fraction is -0.1 at step 2");
}

TEST(PlanTest, RefusesARunTooLongToPlan) {
  TestModel t;
  const auto algorithm = from_yaml("{algorithm: set, sparsity: 0.5, update: {freq: 100}}");
  t.apply(*algorithm);
  expect_throws<ConfigError>([&] { algorithm->plan(int64_t{1} << 50); },
                             "is longer than can be planned (10000000)");
}

// fc1.weight has 192 elements, fc2.weight 64.
TEST(PlanTest, RefusesAParameterWithoutNonzeros) {
  const std::string begins =
      "parameter 'fc2.weight' of shape [4, 16] begins without any nonzero, because their number is "
      "rounded down; make it less sparse, or leave it out";
  expect_refused("{algorithm: static, sparsity: 0.99}", 3, "static: " + begins);
  expect_refused("{algorithm: rigl, density: 0.01, update: {freq: 2}}", 9, "rigl: " + begins);
  expect_refused("{algorithm: set, fan_in: 0.1, update: {freq: 2}}", 9, "begins without");
  expect_refused("{algorithm: static, sparsity: 0.95, balance_in_groups: 4}", 3, "begins without");
  expect_refused("[{sparsity: 0.5, param_filter: fc1.weight}, {sparsity: 0.99}]", 3, begins);
  expect_refused(
      "{algorithm: gmp, sparsity: {type: polynomial, init: 0, final: 0.99, start: 0, end: 6}, "
      "update: {freq: 2}}",
      9, "gmp: parameter 'fc2.weight' of shape [4, 16] ends without any nonzero");
  expect_refused("{phases: [{until: 3, algorithm: dense}, {algorithm: static, sparsity: 0.99}]}", 9,
                 begins);
  expect_refused("{algorithm: static, sparsity: 0.9, pattern: {type: block, rows: 4, cols: 4}}", 3,
                 "begins without any nonzero");
  expect_refused("{algorithm: snip, sparsity: 0.99, scope: layer}", 3, "snip: parameter 'fc2.");
  expect_refused("{algorithm: snip, sparsity: 0.999}", 3, "snip: of all 256 elements none is kept");
  TestModel t;
  const auto global = from_yaml("{algorithm: snip, sparsity: 0.99}");  // the gradients decide
  t.apply(*global);
  global->plan(3);
}

TEST(PlanTest, RefusesASparsityThatFallsWhereNothingGrows) {
  for (const char* algorithm : {"gmp", "saliency"}) {
    expect_refused(std::string("{algorithm: ") + algorithm +
                       ", sparsity: {type: polynomial, init: 0.9, final: 0.1, start: 0, end: 6}, "
                       "update: {freq: 2, start: 2}}",
                   8,
                   std::string(algorithm) + ": the sparsity falls before the last update at step");
  }
}

TEST(PlanTest, RefusesATargetThatCannotBeReached) {
  TestModel t;
  const auto algorithm = from_yaml("{algorithm: static, sparsity: 0.999, distribution: erk}");
  expect_throws<ConfigError>([&] { t.model.apply(*algorithm); },
                             "the largest that can be reached is 0.9921875");
}

}  // namespace
}  // namespace lacuna::plan_test
