#include "lacuna/framework/program/verification.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "framework/program/runs.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna::verification_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSparse =
    "sparsity={algorithm: set, sparsity: 0.8, update: {freq: 2}, layout: csr}";

Config sparse_config(const char* layout = "csr") {
  Config config = parse_yaml(kTinyRun, "tiny");
  apply_override(config, kSparse);
  config.get("sparsity").set("layout", layout);
  return config;
}

double step(Experiment& experiment) {
  const double loss = run_batches(experiment).mean_loss();
  experiment.optimizer->step();
  experiment.optimizer->zero_grad();
  return loss;
}

TEST(Verification, ARunInTheLayoutOfItsReferenceDoesNotDiffer) {
  const auto run = build_experiment(sparse_config("masked"));
  Verification verification(run->config, 3, std::nullopt);
  for (int i = 0; i < 5; ++i) verification.compare_step(*run, step(*run));
  const ModelDifferences& found = verification.differences();
  EXPECT_EQ(found.loss, 0.0);
  EXPECT_EQ(found.value, 0.0);
  EXPECT_EQ(found.positions, 0);
  EXPECT_GT(found.largest_loss, 1.0);
  EXPECT_GT(found.largest_value, 0.01);
}

TEST(Verification, ACompressedRunDiffersByRounding) {
  const auto run = build_experiment(sparse_config());
  Verification verification(run->config, 10, std::nullopt);
  for (int i = 0; i < 10; ++i) verification.compare_step(*run, step(*run));
  const ModelDifferences& found = verification.differences();
  EXPECT_GT(found.value, 0.0);
  EXPECT_LT(found.relative_value(), 1e-4);
  EXPECT_LT(found.relative_loss(), 1e-4);
}

// Weights that are sparsified by name, beside an activation that is.
Config sparsified_config() {
  Config config = parse_yaml(kTinyRun, "tiny");
  apply_override(config,
                 "sparsifiers=[{tensor: fc1.output, sparsifier: {type: nm, n: 2, m: 4}}, {tensor: "
                 "fc1.weight, sparsifier: {type: scalar_fraction, fraction: 0.8}, layout: csr}]");
  return config;
}

TEST(Verification, ComparesSparsifiedWeights) {
  const auto run = build_experiment(sparsified_config());
  Verification verification(run->config, 10, std::nullopt);
  EXPECT_EQ(run->model->parameter("fc1.weight")->pattern()->layout().name(), "csr");
  for (int i = 0; i < 10; ++i) verification.compare_step(*run, step(*run));
  const ModelDifferences& found = verification.differences();
  EXPECT_GT(found.value, 0.0);  // csr and masked round otherwise
  EXPECT_LT(found.relative_value(), 1e-4);
  run->model->parameter("fc1.weight")->mutable_values().mutable_data()[3] += 0.1f;
  Verification other(run->config, 1, std::nullopt);
  expect_throws<Error>([&] { other.compare_step(*run, 1.0); }, "more than rounding");
}

TEST(Verification, RefusesWhatDrawsByEveryBit) {
  Config config = sparsified_config();
  apply_override(config, "sparsifiers.1.sparsifier={type: random_fraction, fraction: 0.5}");
  const auto run = build_experiment(config);
  expect_throws<ConfigError>([&] { Verification(run->config, 1, std::nullopt); },
                             "--verify cannot compare runs with random_fraction");
}

TEST(Verification, AnotherValueIsAnError) {
  const auto run = build_experiment(sparse_config());
  Verification verification(run->config, 2, std::nullopt);
  verification.compare_step(*run, step(*run));
  const double loss = step(*run);
  run->model->parameter("fc2.bias")->mutable_values().mutable_data()[3] += 0.01f;
  expect_throws<Error>([&] { verification.compare_step(*run, loss); },
                       "verified 2 steps against layout masked: the loss differs by at most ");
  EXPECT_EQ(verification.differences().parameter, "fc2.bias");
}

// Biases before a batch normalization have no gradient but rounding, and Adam makes whole steps of
// it.
Config rounding_config(int64_t seed) {
  Config config = sparse_config();
  apply_override(config,
                 "model=[flatten, {type: linear, name: fc1, out_features: 12}, {type: batch_norm, "
                 "name: norm}, relu, {type: linear, name: fc2, out_features: 10}]");
  apply_override(config, "sparsity.algorithm=rigl");
  apply_override(config, "train.seed=" + std::to_string(seed));
  return config;
}

TEST(Verification, GradientsThatAreRoundingAloneDoNotCount) {
  for (int64_t seed = 0; seed < 6; ++seed) {
    const auto run = build_experiment(rounding_config(seed));
    Verification verification(run->config, 12, std::nullopt);
    verification.watch(*run);
    for (int i = 0; i < 12; ++i) verification.compare_step(*run, step(*run));
    EXPECT_LT(verification.differences().relative_value(), 1e-4) << seed;
    EXPECT_LT(verification.differences().relative_loss(), 1e-4) << seed;
  }
}

TEST(Verification, AWrongGradientIsNoRounding) {
  for (const char* name : {"fc1.weight", "fc2.weight", "norm.weight"}) {
    const auto run = build_experiment(rounding_config(0));
    const ParameterPtr parameter = run->model->parameter(name);
    run->optimizer->register_step_pre_hook([&](Optimizer&) {  // as a kernel might have it
      Tensor& gradient = parameter->mutable_gradient();
      float* largest = gradient.mutable_data();
      for (int64_t i = 1; i < gradient.numel(); ++i) {
        float& value = gradient.mutable_data()[i];
        if (std::abs(value) > std::abs(*largest)) largest = &value;
      }
      *largest = -*largest;
    });
    Verification verification(run->config, 1, std::nullopt);
    verification.watch(*run);
    const double loss = step(*run);
    expect_throws<Error>([&] { verification.compare_step(*run, loss); }, "more than rounding");
    EXPECT_EQ(verification.differences().parameter, name);
  }
}

TEST(Verification, AnotherLossIsAnError) {
  const auto run = build_experiment(sparse_config());
  Verification verification(run->config, 1, std::nullopt);
  const double loss = step(*run);
  expect_throws<Error>([&] { verification.compare_step(*run, loss * 1.01); },
                       "the loss differs by at most 0.01 of the largest, values by ");
}

TEST(Verification, NotANumberIsAnError) {
  const auto run = build_experiment(sparse_config());
  Verification verification(run->config, 1, std::nullopt);
  const double loss = step(*run);
  run->model->parameter("fc2.bias")->mutable_values().mutable_data()[0] = NAN;
  expect_throws<Error>([&] { verification.compare_step(*run, loss); }, "more than rounding");
}

TEST(Verification, MasksMayDifferInTiesAlone) {
  const auto make = [](const std::vector<int64_t>& kept) {
    auto model = std::make_unique<Sequential>();
    model->add<Linear>("fc", {.in_features = 100, .out_features = 100});
    model->initialize(1);
    model->parameter("fc.weight")
        ->set_pattern(Pattern::make(masked_layout(), {100, 100}, Positions::of({100, 100}, kept)));
    return model;
  };
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < 4000; ++i) kept.push_back(2 * i);
  const auto reference = make(kept);
  for (const int64_t moved : {1, 2, 3}) {
    std::vector<int64_t> other = kept;
    for (int64_t i = 0; i < moved; ++i) other[static_cast<size_t>(i)] += 1;
    ModelDifferences found;
    compare_models(*make(other), *reference, found);
    EXPECT_EQ(found.positions, 2 * moved);
    EXPECT_EQ(found.positions_allowed, 4);
    EXPECT_EQ(found.value, 0.0);
    EXPECT_EQ(found.is_within_tolerance(), moved <= 2);
  }
}

TEST(Verification, OfAPatternWholeBlocksMayBeTies) {
  const auto make = [](int64_t tile, const Layout& layout) {
    auto model = std::make_unique<Sequential>();
    model->add<Linear>("fc", {.in_features = 20, .out_features = 20});
    model->initialize(1);
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < 16; ++i) kept.push_back(i / 4 * 20 + 4 * tile + i % 4);
    model->parameter("fc.weight")
        ->set_pattern(Pattern::make(layout, {20, 20}, Positions::of({20, 20}, kept)));
    return model;
  };
  const Layout& own = layout_for(PatternShape::block(4, 4));
  for (const Layout* layout : {&own, &csr_layout()}) {
    // csr holds any positions: who compares says what they come and go by.
    ModelDifferences found;
    if (layout != &own) found.unit = 16;
    compare_models(*make(1, *layout), *make(2, *layout), found);
    EXPECT_EQ(found.positions, 32);
    EXPECT_EQ(found.positions_allowed, 32);
    EXPECT_TRUE(found.is_within_tolerance());
  }
}

TEST(Verification, NeedsSparsity) {
  const auto run = build_experiment(parse_yaml(kTinyRun, "tiny"));
  expect_throws<ConfigError>([&] { Verification(run->config, 1, std::nullopt); },
                             "--verify compares the layouts of sparse parameters, and the "
                             "configuration has no `sparsity`, and no weights under `sparsifiers`");
}

class VerifyRun : public RunFixture {};

TEST_F(VerifyRun, GoesOnAsIfItHadNotBeenVerified) {
  const Ended ended = train({"--set", kSparse, "--verify", "4"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err,
              HasSubstr("verified 4 steps against layout masked: the loss differs by at most "));
  EXPECT_THAT(ended.out, HasSubstr("results   " + run_dir()));
  ASSERT_EQ(train({"--set", kSparse}, "plain").code, 0);
  EXPECT_TRUE(differences(read_checkpoint(checkpoint(18)).state,
                          read_checkpoint(checkpoint(18, "plain")).state)
                  .empty());
}

TEST_F(VerifyRun, ComparesWhatIsLeftOfAShorterRun) {
  const Ended ended = train({"--set", kSparse, "--set", "train.steps=2", "--verify", "100"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("verified 2 steps against layout masked"));
}

TEST_F(VerifyRun, ComparesAResumedRunFromItsCheckpoint) {
  ASSERT_EQ(train({"--set", kSparse}, "run", {.fault = "step.between:6"}).code, -9);
  const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir(), "--verify", "3"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("verified 3 steps against layout masked"));
}

TEST_F(VerifyRun, RefusesWhatItCannotCompare) {
  const Ended dense = train({"--verify", "2"});
  EXPECT_EQ(dense.code, 2);
  EXPECT_THAT(dense.err, HasSubstr("the configuration has no `sparsity`"));
  EXPECT_THAT(listing(folder_.path()), Not(HasSubstr("run")));
  for (const char* steps : {"0", "-1", "many"}) {
    const Ended ended = train({"--set", kSparse, "--verify", steps});
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.err, HasSubstr("expected a number of steps from 1 to 1000000000, found " +
                                     std::string(steps)));
  }
}

}  // namespace
}  // namespace lacuna::verification_test
