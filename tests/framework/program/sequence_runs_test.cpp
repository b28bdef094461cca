// Runs of convolutional networks of sequences: the plan, a run that is killed and resumed, and its
// evaluation.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "framework/train/tiny_sequences.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/param/saved_parameter.hpp"

namespace lacuna::sequence_runs_test {
namespace {

using testing::ContainsRegex;
using testing::IsEmpty;

constexpr int kKill = -9;
constexpr int64_t kSteps = 8;

class SequenceRuns : public RunFixture {
 protected:
  SequenceRuns() {
    write_text(config(),
               "data: {type: glyphs, train_size: 70, test_size: 20, validation: 10}\n"
               "model:\n  layers:" +
                   std::string(kTinySequenceModel) +
                   "optimizer: {type: sgd, lr: 0.05, momentum: 0.9}\n"
                   "sparsity: {algorithm: rigl, sparsity: 0.8, update: {freq: 2}, layout: csr, "
                   "param_filter: '" +
                   kTinySequenceFilter +
                   "'}\n"
                   "train: {epochs: 2, batch_size: 8, accumulate: 2, threads: 1, log_every: 2, "
                   "eval_every: 3, checkpoint: {every: 3, keep_last: 2}}\n");
  }
};

TEST_F(SequenceRuns, PlanShowsTheirLayersAndWeights) {
  const Ended ended = run_lacuna({"plan", config()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  // 28 · 5 · 16 weights at 14 places; 16 · 3 · 32 at 5.
  EXPECT_THAT(ended.out, ContainsRegex("stem +conv1d +\\[16, 14\\] +2240 +2240 +62720 +62720"));
  EXPECT_THAT(ended.out, ContainsRegex("conv3 +conv1d +\\[32, 5\\] +1568 "));
  EXPECT_THAT(ended.out, ContainsRegex("conv3.weight +\\[32, 16, 3\\] +rigl +307 +307"));
  EXPECT_THAT(ended.out, ContainsRegex("max_pool1 +max_pool +\\[16, 7\\]"));
  EXPECT_THAT(ended.out, ContainsRegex("conv1.weight is stored as csr"));
}

TEST_F(SequenceRuns, KilledAndResumedEndAsIfNothingHadHappened) {
  for (const char* layout : {"csr", "auto"}) {
    const std::string whole = std::string("whole_") + layout,
                      killed = std::string("killed_") + layout;
    const Ended ended = train({"--set", std::string("sparsity.layout=") + layout}, whole);
    ASSERT_EQ(ended.code, 0) << ended.err;
    ASSERT_EQ(run_lacuna({"train", run_dir(whole) + "/config.yaml", "--run-dir", run_dir(killed)},
                         {.fault = "step.between:4"})
                  .code,
              kKill);
    ASSERT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir(killed)}).code, 0);
    const Checkpoint a = read_checkpoint(checkpoint(kSteps, whole));
    const Checkpoint b = read_checkpoint(checkpoint(kSteps, killed));
    EXPECT_THAT(differences(a.state, b.state), IsEmpty());
    EXPECT_EQ(timeless_events(run_dir(whole)), timeless_events(run_dir(killed)));
    const StateDict model = a.state.below("model");
    const SavedParameter weight(model, "conv3.weight");
    EXPECT_EQ(weight.shape(), (Shape{32, 16, 3}));
    if (layout == std::string("csr")) {
      EXPECT_EQ(weight.layout().name(), "csr");
    }
  }
}

TEST_F(SequenceRuns, AreVerifiedAgainstMasked) {
  const Ended ended = train({"--verify", "6"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// What eval folds changes the last bits alone; labels are those of the data.
TEST_F(SequenceRuns, AreEvaluatedWithTheirNormsFolded) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = run_lacuna({"eval", run_dir(), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config test = parse_yaml(ended.out, "eval").at("splits").items()[1];
  const Config run = summary(run_dir());
  const auto loss = run.required<double>("test_loss");
  EXPECT_NEAR(test.required<double>("loss"), loss, 1e-5 * loss);
  EXPECT_EQ(test.required<double>("accuracy"), run.required<double>("test_accuracy"));
}

// Sequences of a user's, from a file.
TEST_F(SequenceRuns, TrainOnArraysOfAFile) {
  Hdf5File file = Hdf5File::create(folder_ / "waves.h5");
  for (const char* split : {"train_", "test_"}) {
    std::vector<float> waves;
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < 64; ++i) {
      labels.push_back(i % 2);  // slow waves and fast ones, each with a phase of its own
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t t = 0; t < 20; ++t) {
          const double speed = i % 2 == 0 ? 0.4 : 1.7;
          waves.push_back(static_cast<float>(
              std::sin(speed * static_cast<double>(t) + static_cast<double>(i * (c + 1)))));
        }
      }
    }
    file.write(std::string(split) + "inputs", Tensor::from({64, 2, 20}, waves));
    file.write(std::string(split) + "targets", Shape{64}, labels);
  }
  file.close();
  write_text(config(),
             "data: {type: hdf5, path: " + (folder_ / "waves.h5") +
                 ", test_inputs: test_inputs, test_targets: test_targets}\n"
                 "model:\n"
                 "  - {type: conv1d, name: conv1, out_channels: 8, kernel: 5}\n"
                 "  - batch_norm\n"
                 "  - relu\n"
                 "  - {type: conv1d, name: conv2, out_channels: 8, kernel: 3, groups: 2}\n"
                 "  - relu\n"
                 "  - global_average_pool\n"
                 "  - {type: linear, name: fc, out_features: 2}\n"
                 "optimizer: {type: adam, lr: 0.02}\n"
                 "sparsity: {sparsity: 0.5, param_filter: 'conv*.weight', layout: csr}\n"
                 "train: {epochs: 12, batch_size: 16, threads: 1}\n");
  const Ended ended = train();
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(summary(run_dir()).required<double>("test_accuracy"), 1.0);
}

}  // namespace
}  // namespace lacuna::sequence_runs_test
