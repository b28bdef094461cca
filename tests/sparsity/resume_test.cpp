// A run that is saved after any step, updates included, and loaded into another process's objects
// goes on to the same bits, for every algorithm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "state_differences.h"
#include "test_model.h"

namespace lacuna::resume_test {
namespace {

constexpr int kSteps = 12;

struct Variant {
  const char* name;
  const char* yaml;
};

/// A model under an algorithm, and everything that a checkpoint holds of them.
struct Training {
  explicit Training(const char* yaml, RegrownWeights::Age age, uint64_t initial = 0)
      : t(0, {.age = age}) {
    register_builtins();
    algorithm = configure(parse_yaml(yaml, "c.yaml"), 0);
    t.model.initialize(initial);
    t.apply(*algorithm);
  }
  StateDict state() const {
    StateDict all;
    all.merge("model", t.model.state_dict());
    all.merge("optimizer", t.optimizer->state_dict());
    all.merge("algorithm", algorithm->state_dict());
    return all;
  }
  void load(const StateDict& all) {
    t.model.load_state_dict(all.below("model"));
    algorithm->load_state_dict(all.below("algorithm"));
    t.optimizer->load_state_dict(all.below("optimizer"));
  }
  /// What the step did to the masks, as the metrics tell it.
  std::vector<std::string> last_update() const {
    std::vector<std::string> lines;
    for (const MaskUpdate& u : algorithm->last_update()) {
      lines.push_back(u.parameter + ": " + Config(u.target_sparsity).text() + " " +
                      std::to_string(u.nnz) + " -" + std::to_string(u.dropped) + " +" +
                      std::to_string(u.grown) + " " + Config(u.ever_active.value_or(-1.0)).text());
    }
    return lines;
  }

  TestModel t;
  std::unique_ptr<SparsityAlgorithm> algorithm;
};

class ResumedAlgorithm : public testing::TestWithParam<Variant> {};

void expect_resumes(const char* yaml, RegrownWeights::Age age) {
  std::vector<StateDict> states;
  std::vector<std::vector<std::string>> updates;
  Training whole(yaml, age);
  for (int step = 0; step <= kSteps; ++step) {
    if (step > 0) whole.t.step();
    states.push_back(whole.state());
    updates.push_back(whole.last_update());
  }
  for (size_t from = 0; from < kSteps; ++from) {
    Training resumed(yaml, age, 99);  // other weights: all must come from the state
    resumed.load(states[from]);
    ASSERT_THAT(differences(resumed.state(), states[from]), testing::IsEmpty()) << from;
    for (size_t step = from + 1; step <= kSteps; ++step) {
      resumed.t.step();
      ASSERT_THAT(differences(resumed.state(), states[step]), testing::IsEmpty())
          << "loaded after step " << from << ", differs after step " << step;
      ASSERT_EQ(resumed.last_update(), updates[step]) << from << ", " << step;
    }
  }
}

TEST_P(ResumedAlgorithm, GoesOnFromAnyStep) {
  expect_resumes(GetParam().yaml, RegrownWeights::Age::Shared);
}

TEST_P(ResumedAlgorithm, GoesOnFromAnyStepWithAgesOfWeights) {
  expect_resumes(GetParam().yaml, RegrownWeights::Age::Own);
}

constexpr const char* kPolynomial =
    "{type: polynomial, init: 0.1, final: 0.8, start: 2, end: 9}, update: {freq: 2}";

const std::vector<Variant>& variants() {
  static const std::string gmp = std::string("{algorithm: gmp, sparsity: ") + kPolynomial + "}";
  static const std::string saliency =
      std::string("{algorithm: saliency, sparsity: ") + kPolynomial + "}";
  static const std::string ste = std::string("{algorithm: ste, sparsity: ") + kPolynomial + "}";
  static const std::vector<Variant> all = {
      {"Static", "{sparsity: 0.7, distribution: erk}"},
      {"Gmp", gmp.c_str()},
      {"Saliency", saliency.c_str()},
      {"StraightThrough", ste.c_str()},
      {"AcDc", "{algorithm: acdc, sparsity: 0.75, update: {freq: 3}}"},
      {"Set", "{algorithm: set, sparsity: 0.7, update: {freq: 2}}"},
      {"SetByACycle", "{algorithm: set, sparsity: [0.9, 0.5, 0.7], update: {freq: 2}}"},
      {"RigL",
       "{algorithm: rigl, sparsity: 0.8, update: {freq: 3, stop: 10}, balance_in_groups: 4, "
       "drop_fraction: {type: cosine, init: 0.5, half_period: 10}}"},
      {"RigLFromDense", "{algorithm: rigl, sparsity: 0.8, update: {steps: [2, 3, 5, 8, 9]}}"},
      {"Dynamic", "{algorithm: dynamic, grow: {mixed: 0.5}, sparsity: 0.8, update: {freq: 2}}"},
      {"SRigL",
       "{algorithm: srigl, sparsity: 0.7, min_salient: 0.9, update: {freq: 2}, "
       "drop_fraction: 0.5}"},
      {"Snfs", "{algorithm: snfs, sparsity: 0.7, update: {freq: 3}, drop_fraction: 0.5}"},
      {"Snip", "{algorithm: snip, sparsity: 0.8}"},
      {"GroupOfShadowAndMomentum",
       "[{algorithm: ste, sparsity: 0.7, update: {freq: 3}, param_filter: fc1.weight}, "
       "{algorithm: snfs, sparsity: 0.5, update: {freq: 2}, param_filter: fc2.weight}]"},
      {"GroupOfSnipAndAcDc",
       "[{algorithm: snip, sparsity: 0.7, param_filter: fc2.weight}, "
       "{algorithm: acdc, sparsity: 0.5, update: {freq: 2}, param_filter: fc1.weight}]"},
      {"PhasesToDenseAndBack",
       "phases: [{until: 4, algorithm: set, sparsity: 0.6, update: {freq: 2}}, "
       "{until: 7, algorithm: dense}, {algorithm: rigl, sparsity: 0.8, update: {freq: 2}}]"},
      {"PhasesOfStateful",
       "phases: [{until: 3, algorithm: static, sparsity: 0.5}, "
       "{until: 7, algorithm: ste, sparsity: 0.7, update: {freq: 2}}, "
       "{algorithm: snfs, sparsity: 0.8, update: {freq: 2}}]"},
      {"PhasesFromOnePart",
       "phases: [{until: 5, algorithm: snip, sparsity: 0.5, param_filter: fc1.weight}, "
       "{until: 8, algorithm: acdc, sparsity: 0.7, update: {freq: 2}, param_filter: fc2.weight}, "
       "{algorithm: static, sparsity: 0.8}]"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, ResumedAlgorithm, testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lacuna::resume_test
