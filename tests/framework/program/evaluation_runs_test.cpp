// Evaluations of runs: none costs an epoch, whether it is killed or there is no memory for it, and
// none needs more memory for more examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::evaluation_runs_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kKill = -9;
constexpr int64_t kMegabyte = 1'000'000;

// Four epochs of five steps, each with a checkpoint and an evaluation; the best is kept.
constexpr const char* kRun =
    "data: {type: glyphs, train_size: 100, test_size: 20, validation: 20}\n"
    "model: [flatten, {type: linear, name: fc1, out_features: 16}, relu,\n"
    "        {type: linear, name: fc2, out_features: 10}]\n"
    "optimizer: {type: adam, lr: 0.01}\n"
    "train: {epochs: 5, batch_size: 20, threads: 1, tensorboard: true,\n"
    "        early_stopping: {patience: 2},\n"
    "        checkpoint: {keep_last: 3, keep_best: true}}\n";

class EvaluationRuns : public RunFixture {
 protected:
  void expect_same(const std::string& a, const std::string& b) const {
    const std::string x = find_checkpoint(run_dir(a)).path(),
                      y = find_checkpoint(run_dir(b)).path();
    EXPECT_THAT(differences(read_checkpoint(x).state, read_checkpoint(y).state),
                testing::IsEmpty());
    const auto best = [&](const std::string& run) {
      return read_checkpoint(run_dir(run) + "/checkpoints/best.h5").state;
    };
    EXPECT_THAT(differences(best(a), best(b)), testing::IsEmpty());
    EXPECT_EQ(timeless_events(run_dir(a)), timeless_events(run_dir(b)));
    EXPECT_EQ(listing(run_dir(a) + "/checkpoints"), listing(run_dir(b) + "/checkpoints"));
    for (const char* key : {"best_step", "best_validation_loss", "test_loss", "steps"}) {
      EXPECT_EQ(summary(run_dir(a)).at(key).text(), summary(run_dir(b)).at(key).text()) << key;
    }
  }
};

// Whatever is written last, the step's checkpoint or best.h5.
TEST_F(EvaluationRuns, KilledAfterAnyCheckpointGoOnAsIfTheyWereNot) {
  write_text(config(), kRun);
  ASSERT_EQ(train({}, "whole").code, 0);
  for (const std::string point : {"checkpoint.after_rename:", "checkpoint.after_prune:"}) {
    for (int n = 1;; ++n) {
      SCOPED_TRACE(point + std::to_string(n));
      const std::string name = "run" + point.substr(11) + std::to_string(n);
      const Ended ended = train({}, name, {.fault = point + std::to_string(n)});
      if (ended.code == 0) break;
      ASSERT_EQ(ended.code, kKill) << ended.err;
      EXPECT_EQ(run_lacuna({"eval", run_dir(name)}).code, 0);
      const Ended resumed = train({"--resume"}, name);
      ASSERT_EQ(resumed.code, 0) << resumed.err;
      expect_same(name, "whole");
    }
  }
}

TEST_F(EvaluationRuns, SaveTheEpochBeforeTheyEvaluateIt) {
  write_text(config(), kRun);
  ASSERT_EQ(train({}, "run", {.fault = "checkpoint.after_prune:2"}).code, kKill);
  const Checkpoint saved = read_checkpoint(checkpoint(4));
  EXPECT_TRUE(saved.state.contains("trainer/evaluation_is_due"));
  EXPECT_FALSE(saved.state.contains("trainer/test_loss"));
  ASSERT_EQ(train({"--resume"}).code, 0);
  const Checkpoint last = find_checkpoint(run_dir()).read();
  EXPECT_FALSE(last.state.contains("trainer/evaluation_is_due"));
  EXPECT_TRUE(last.state.contains("trainer/test_loss"));
}

// A table of 1500 examples, half of them for validation, and a layer of 1.6 MB for each.
class WideRuns : public RunFixture {
 protected:
  WideRuns() {
    std::string table = "a,b,y\n";
    for (int i = 0; i < 1500; ++i) {
      table +=
          std::to_string(i % 13) + "," + std::to_string(i % 7) + "," + std::to_string(i % 3) + "\n";
    }
    write_text(folder_ / "table.csv", table);
  }
  void write_config(const std::string& last_layers) const {
    write_text(config(), "data: {type: csv, train: " + folder_ / "table.csv" +
                             ", validation: 0.5}\n"
                             "model: [{type: linear, name: a, out_features: 400000}, " +
                             last_layers +
                             "]\n"
                             "optimizer: {type: sgd, lr: 0.0001}\n"
                             "train: {steps: 2, batch_size: 3, threads: 1}\n");
  }
  const ProcessOptions small_{.max_address_bytes = 900 * kMegabyte};
};

// Where the normalization needs all examples at once.
TEST_F(WideRuns, FailAtOnceWhereThereIsNoMemoryToEvaluate) {
  write_config(
      "{type: linear, name: b, out_features: 3}, {type: batch_norm, track_running_stats: false}");
  const Ended ended = train({}, "run", small_);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("layer 'a' (linear) with [750, 2]: out of memory: 1200.0 MB more"),
                    HasSubstr("; evaluating 750 examples at a time takes about 1200.0 MB"),
                    HasSubstr("; a smaller train.eval_batch_size or model needs less"),
                    Not(HasSubstr("train.batch_size"))));
  EXPECT_TRUE(events(run_dir()).empty());
  const ProcessOptions smaller{.max_address_bytes = 500 * kMegabyte};
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"plan", config()}, {"train", config(), "--run-dir", run_dir("other")}}) {
    const Ended refused = run_lacuna(command, smaller);
    EXPECT_EQ(refused.code, 1) << command[0];
    EXPECT_THAT(
        refused.err,
        AllOf(HasSubstr("out of memory: there are 500.0 MB in all; evaluating 750 examples"),
              HasSubstr("; a smaller train.eval_batch_size or model needs less")));
  }
  EXPECT_FALSE(std::filesystem::exists(run_dir("other")));
  const Ended resumed = train({"--resume", "--set", "train.eval_batch_size=50"}, "run", small_);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

// Sparsified activations are of whole batches, too.
TEST_F(WideRuns, NameTheKeyOfABatchThatIsSparsified) {
  write_config("{type: linear, name: b, out_features: 3}");
  const std::string sparsify =
      "sparsifiers=[{tensor: a.output, sparsifier: {type: scalar_fraction, "
      "fraction: 0.5}}]";
  const auto refused = [&](const std::string& key, const std::string& batch) {
    const Ended ended = train({"--set", sparsify, "--set", key + "=700"}, "run", small_);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err,
                AllOf(HasSubstr("layer 'a' (linear) with [700, 2]: out of memory: 1120.0 MB more"),
                      HasSubstr("; " + batch +
                                " (700 examples) runs at once where activations are "
                                "sparsified; a smaller " +
                                key + " or model needs less\n")));
  };
  refused("train.eval_batch_size", "evaluation");
  refused("train.batch_size", "training");
}

// As many at a time as train.eval_batch_size has would take 1.2 GB.
TEST_F(WideRuns, NeedNoMoreMemoryForMoreExamples) {
  write_config("{type: linear, name: b, out_features: 3}");
  write_text(folder_ / "prune.yaml",
             "sparsity: {algorithm: magnitude, sparsity: 0.5, param_filter: a.weight}\n");
  const auto expect_done = [&](const std::vector<std::string>& arguments) {
    const Ended ended = run_lacuna(arguments, small_);
    EXPECT_EQ(ended.code, 0) << arguments[0] << ": " << ended.err;
    return ended.out;
  };
  expect_done({"train", config(), "--run-dir", run_dir()});
  expect_done({"eval", run_dir()});
  expect_done({"predict", run_dir(), folder_ / "table.csv", "--out", folder_ / "out.csv"});
  expect_done({"prune", run_dir(), folder_ / "prune.yaml", "--run-dir", run_dir("pruned")});
  const Config plan = parse_yaml(expect_done({"plan", config(), "--json"}), "plan");
  const Config evaluation = plan.at("evaluation");
  EXPECT_LT(evaluation.required<int64_t>("examples"), 100);
  EXPECT_LT(evaluation.required<int64_t>("bytes"), int64_t{64} << 20);
  EXPECT_THAT(expect_done({"plan", config()}),
              HasSubstr("evaluation runs " + evaluation.at("examples").text() +
                        " examples at a time, whose activations take about "));
}

}  // namespace
}  // namespace lacuna::evaluation_runs_test
