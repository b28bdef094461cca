#include "lacuna/sparsity/phases.h"

#include <gtest/gtest.h>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/dense.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/static.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::phases_test {
namespace {

std::unique_ptr<SparsityAlgorithm> from_yaml(const std::string& yaml) {
  register_builtins();
  const Config config = parse_yaml(yaml, "c.yaml");
  auto algorithm = configure(config, 0);
  config.require_all_read();
  return algorithm;
}

constexpr const char* kPlan = R"(
phases:
  - {until: 4, algorithm: rigl, sparsity: 0.75, update: {freq: 2}, drop_fraction: 0.5}
  - {until: 7, algorithm: static, sparsity: 0.875, param_filter: "fc1.weight"}
  - {algorithm: dense}
)";

TEST(PhasesTest, MovesOnWithTheMasksThatTheOneBeforeLeft) {
  TestModel t;
  const auto phases = from_yaml(kPlan);
  t.apply(*phases);
  for (int i = 0; i < 3; ++i) t.step();
  EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz(), 48);
  t.step();  // step 4: an update of RigL, then the sparser target prunes at once
  EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz(), 24);
  EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), 16);  // not chosen: keeps its mask
  EXPECT_EQ(t.weight("fc1.weight").sparsified_by, "static");
  const ByteArray kept = t.weight("fc2.weight").mask();
  for (int i = 0; i < 3; ++i) t.step();
  EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz(), 192);  // dense from step 7 on
  EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), 64);
  const auto& moment = t.weight("fc2.weight").slots().at("exp_avg").values;
  for (size_t i = 0; i < kept.values.size(); ++i) {
    if (kept.values[i] == 0) {
      ASSERT_EQ(t.weight("fc2.weight").to_dense().storage()[i], 0.0f);
      ASSERT_EQ(moment.storage()[i], 0.0f);
    }
  }
  t.step();
  EXPECT_EQ(phases->step(), 8);
}

// What a phase of `dense` alone has in charge is made sparse by nothing.
TEST(PhasesTest, DensePhasesMakeNothingSparse) {
  const auto names = [](const SparsityAlgorithm& algorithm) {
    std::vector<std::string> all;
    for (const ParameterPtr& p : algorithm.sparse_parameters()) all.push_back(p->name());
    return all;
  };
  for (const auto& [yaml, sparse] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"phases: [{until: 4, algorithm: dense}, {algorithm: static, sparsity: 0.5}]",
            {"fc1.weight", "fc2.weight"}},
           {"phases: [{until: 4, algorithm: dense}, {algorithm: static, sparsity: 0.5, "
            "param_filter: fc1.weight}]",
            {"fc1.weight"}},
           {"[{algorithm: dense, param_filter: fc1.weight}, {algorithm: static, sparsity: 0.5}]",
            {"fc2.weight"}},
           {"{algorithm: dense}", {}}}) {
    TestModel t;
    const auto algorithm = from_yaml(yaml);
    t.apply(*algorithm);
    EXPECT_EQ(algorithm->parameters().size(), 2u) << yaml;
    EXPECT_EQ(names(*algorithm), sparse) << yaml;
  }
}

TEST(PhasesTest, TransitionsAreReported) {
  TestModel t;
  const auto phases = from_yaml(kPlan);
  t.apply(*phases);
  for (int i = 0; i < 4; ++i) t.step();
  const std::vector<MaskUpdate> updates = phases->last_update();
  ASSERT_EQ(updates.size(), 3u);  // two by RigL, one by the new phase
  EXPECT_EQ(updates[2].nnz, 24);
  EXPECT_EQ(updates[2].dropped, 24);
}

TEST(PhasesTest, ResumesInAnyPhase) {
  for (const int before : {2, 4, 5, 7, 8}) {
    TestModel whole, second;
    const auto straight = from_yaml(kPlan), resumed = from_yaml(kPlan);
    whole.apply(*straight);
    second.apply(*resumed);
    for (int i = 0; i < before; ++i) whole.step();
    second.model.load_state_dict(whole.model.state_dict());
    second.optimizer->load_state_dict(whole.optimizer->state_dict());
    resumed->load_state_dict(straight->state_dict());
    for (int i = before; i < 10; ++i) {
      whole.step();
      second.step();
    }
    for (const char* name : {"fc1.weight", "fc2.weight"}) {
      EXPECT_EQ(whole.weight(name).mask(), second.weight(name).mask()) << before;
      EXPECT_EQ(whole.weight(name).to_dense().to_vector(),
                second.weight(name).to_dense().to_vector())
          << before;
    }
  }
}

TEST(PhasesTest, PlanCountsEachPhase) {
  TestModel t;
  const auto phases = from_yaml(kPlan);
  t.apply(*phases);
  const std::vector<PlannedParameter> plan = phases->plan(10);
  ASSERT_EQ(plan.size(), 5u);
  EXPECT_EQ(plan[0].final_nnz, 48);
  EXPECT_EQ(plan[0].update_steps, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(plan[2].initial_nnz, 24);
  EXPECT_EQ(plan[3].final_nnz, 192);
  expect_throws<ConfigError>([&] { phases->plan(7); }, "phase 2 begins at step 7, the run ends at");
}

// A limit that a later phase needs first would be measured for another batch, and kept.
TEST(PhasesTest, LaterPhasesArePlannedForTheRunsBatch) {
  auto first = std::make_unique<Dense>();
  auto later = std::make_unique<Static>(SparsityOptions{.sparsity = 0.75});
  const SparsityAlgorithm& static_phase = *later;
  std::vector<Phase> parts;
  parts.push_back({std::move(first), 4});
  parts.push_back({std::move(later), std::nullopt});
  Phases phases(std::move(parts));
  phases.compression().batch = 7;
  TestModel t;
  t.apply(phases);
  phases.plan(8);
  EXPECT_EQ(static_phase.compression().batch, 7);
  EXPECT_EQ(&static_phase.compression(), &phases.compression());
}

TEST(PhasesTest, ALaterSemiSparsePhaseIsPlannedForMasksOfOneStep) {
  TestModel t;
  const auto phases = from_yaml(R"(
phases:
  - {until: 4, algorithm: dense, param_filter: "fc1.weight"}
  - {algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, param_filter: "fc1.weight"}
)");
  t.apply(*phases);
  const std::vector<PlannedParameter> planned = phases->plan(8);
  ASSERT_EQ(planned.size(), 2u);
  EXPECT_EQ(planned[0].lifetime, PatternLifetime::ManySteps);
  EXPECT_EQ(planned[1].lifetime, PatternLifetime::OneStep);
  const auto& limits = phases->compression().compress_below;
  EXPECT_TRUE(limits.contains({"fc1.weight", "nm 2:4", PatternLifetime::OneStep}));
  EXPECT_FALSE(limits.contains({"fc1.weight", "nm 2:4"}));
}

TEST(PhasesTest, UpdateStepsCountFromThePhasesBeginning) {
  TestModel t;
  const auto phases = from_yaml(R"(
phases:
  - {until: 3, algorithm: static, sparsity: 0.5}
  - {algorithm: set, sparsity: 0.5, update: {freq: 2}, drop_fraction: 0.5}
)");
  t.apply(*phases);
  std::vector<int> changed;
  for (int i = 1; i <= 8; ++i) {
    const ByteArray before = t.weight().mask();
    t.step();
    if (!(t.weight().mask() == before)) changed.push_back(i);
  }
  EXPECT_EQ(changed, (std::vector<int>{5, 7}));
}

TEST(PhasesTest, Refusals) {
  expect_throws<ConfigError>([] { from_yaml("phases: [{algorithm: dense, until: 3}]"); },
                             "lasts to the end of the run");
  expect_throws<ConfigError>([] { from_yaml("phases: [{algorithm: dense}, {algorithm: dense}]"); },
                             "phase 0 needs `until`");
  expect_throws<ConfigError>(
      [] {
        from_yaml(
            "phases: [{until: 5, algorithm: dense}, {until: 5, algorithm: dense}, "
            "{algorithm: dense}]");
      },
      "until must be a step after 5, found 5");
  expect_throws<ConfigError>([] { from_yaml("phases: []"); }, "at least one");
  expect_throws<ConfigError>([] { from_yaml("phases: [dense]"); },
                             "phases.0: expected a map with `algorithm` and its keys, found");
  expect_throws<ConfigError>([] { from_yaml("phases: [{algorithm: static}]"); },
                             "phases.0: static needs `sparsity`");
  const auto phases = from_yaml(
      "phases: [{until: 2, algorithm: dense}, "
      "{sparsity: 0.5, param_filter: nothing}]");
  TestModel t;
  expect_throws<ConfigError>([&] { t.model.apply(*phases); }, "'nothing' matches no parameter");
}

TEST(PhasesTest, HoldSingleAlgorithms) {
  std::vector<Phase> phases;
  auto group = std::make_unique<Group>();
  group->add({}, std::make_unique<Dense>(ParameterFilter()));
  phases.push_back({std::move(group), std::nullopt});
  expect_throws<StateError>([&] { Phases(std::move(phases)); },
                            "phase 0 must be a single algorithm, found 'group'");
}

TEST(PhasesTest, AreAppliedOnce) {
  TestModel t;
  const auto phases = from_yaml(kPlan);
  t.apply(*phases);
  expect_throws<StateError>([&] { t.model.apply(*phases); },
                            "sparsity algorithm 'phases' has been applied to a model already");
}

TEST(PhasesTest, RefuseTheStateOfAnotherPlan) {
  TestModel t, other;
  const auto phases = from_yaml(kPlan);
  t.apply(*phases);
  StateDict state = phases->state_dict();
  state.set("phase", int64_t{3});
  expect_throws<CheckpointError>([&] { phases->load_state_dict(state); },
                                 "the checkpoint is in phase 3 of a plan of 3");
  state.set("phase", int64_t{-1});
  expect_throws<CheckpointError>([&] { phases->load_state_dict(state); }, "is in phase -1 of");
  state.set("phase", int64_t{1});
  expect_throws<CheckpointError>([&] { phases->load_state_dict(state); },
                                 "is in phase 1 at step 0, but the plan is in another");
  Static single({.sparsity = 0.5});
  other.apply(single);
  expect_throws<CheckpointError>(
      [&] { phases->load_state_dict(single.state_dict()); },
      "the checkpoint holds the state of sparsity algorithm 'static', the run uses 'phases'");
}

TEST(Phases, NullAlgorithmsAreErrors) {
  std::vector<Phase> phases(1);
  expect_throws<StateError>([&] { Phases(std::move(phases)); },
                            "phase 0 was given no algorithm: the pointer is null");
  Group group;
  expect_throws<StateError>([&] { group.add(ParameterFilter("*"), nullptr); },
                            "the group was given no algorithm: the pointer is null");
}

}  // namespace
}  // namespace lacuna::phases_test
