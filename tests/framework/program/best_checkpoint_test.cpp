// Which of a run's checkpoints a command takes: the best where one is kept, and says so; the last
// where --last asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::best_checkpoint_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A run whose best checkpoint is another than its last.
class BestCheckpoint : public RunFixture {
 protected:
  void begin() {
    ASSERT_EQ(train({"--set", "optimizer={type: sgd, lr: 0.5}", "--set", "train.epochs=40", "--set",
                     "train.early_stopping={patience: 2}"})
                  .code,
              0);
    last_ = find_checkpoint(run_dir()).path();
    ASSERT_NE(read_checkpoint(last_).step, read_checkpoint(best()).step);
  }
  std::string best() const { return run_dir() + "/checkpoints/best.h5"; }

  Ended begin_with(const std::string& source, const std::string& name,
                   std::vector<std::string> more = {}) const {
    const std::vector<std::string> frozen = {
        "--init-from", source, "--set", "optimizer={type: sgd, lr: 0}", "--set", "train.steps=1"};
    more.insert(more.end(), frozen.begin(), frozen.end());
    return train(more, name);
  }

  std::string last_;
};

TEST_F(BestCheckpoint, IsWhatInitFromTakesOfARun) {
  begin();
  const Ended ended = begin_with(run_dir(), "tuned");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("init_from: using '" + best() + "', the best that the run has kept"));
  EXPECT_THAT(read_text(run_dir("tuned") + "/log.txt"), HasSubstr("using '" + best()));
  EXPECT_EQ(begin_with(run_dir(), "of last", {"--last"}).code, 0);
  EXPECT_EQ(begin_with(last_, "of path").code, 0);
  const auto weights = [&](const std::string& path) {
    return read_checkpoint(path).state.get<Tensor>("model/fc1.weight").to_vector();
  };
  const auto of_run = [&](const std::string& name) {
    return weights(find_checkpoint(run_dir(name)).path());
  };
  EXPECT_EQ(of_run("tuned"), weights(best()));
  EXPECT_EQ(of_run("of last"), weights(last_));
  EXPECT_EQ(of_run("of path"), weights(last_));
  EXPECT_NE(weights(best()), weights(last_));
  EXPECT_EQ(load_yaml(run_dir("of last") + "/config.yaml").at("model").at("init_from").text(),
            last_);
  // With rules for names, by the configuration, too.
  std::string other = read_text(config());
  other.replace(other.find("model:\n"), 7,
                "model:\n  init_from: {path: " + run_dir() + ", skip: fc2.*}\n  layers:\n");
  write_text(config(), other);
  const Ended skipping =
      train({"--set", "optimizer={type: sgd, lr: 0}", "--set", "train.steps=1"}, "skipping");
  ASSERT_EQ(skipping.code, 0) << skipping.err;
  EXPECT_THAT(skipping.err, HasSubstr("using '" + best()));
  EXPECT_EQ(of_run("skipping"), weights(best()));
}

TEST_F(BestCheckpoint, IsWhatInspectShowsOfARun) {
  begin();
  const auto shown = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"inspect", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_lacuna(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return std::pair(parse_yaml(ended.out, "out").at("checkpoint").text(), ended.err);
  };
  EXPECT_EQ(shown({run_dir()}).first, best());
  EXPECT_THAT(shown({run_dir()}).second, HasSubstr("(the best; --last selects the last)"));
  EXPECT_EQ(shown({run_dir(), "--last"}).first, last_);
  EXPECT_EQ(shown({last_}).first, last_);
}

// Of a run that has ended, resumed where its best has been damaged since.
TEST_F(BestCheckpoint, ADamagedOneIsToldAndTheLastKept) {
  begin();
  std::string damaged = read_text(best());
  damaged[damaged.size() / 2] ^= 1;
  write_text(best(), damaged);
  const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir()});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("best.h5' is damaged"),
                               HasSubstr("; the model keeps the weights of the last step")));
  EXPECT_EQ(read_text(best()), damaged);
}

// A run of which all checkpoints are kept, its best the last of all.
class StaleBest : public RunFixture {
 protected:
  StaleBest() {
    write_text(config(),
               "data: {type: glyphs, train_size: 200, test_size: 20, validation: 40}\n"
               "model: [flatten, {type: linear, name: fc1, out_features: 16}, relu,\n"
               "        {type: linear, name: fc2, out_features: 10}]\n"
               "optimizer: {type: adam, lr: 0.001}\n"
               "train: {steps: 40, batch_size: 20, eval_every: 10, threads: 1,\n"
               "        checkpoint: {every: 10, keep_last: 9, keep_best: true}}\n");
    EXPECT_EQ(train({}).code, 0);
    EXPECT_EQ(read_checkpoint(best()).step, 40);
  }
  std::string best() const { return run_dir() + "/checkpoints/best.h5"; }
  void go_back() const {
    for (const int64_t step : {30, 40}) std::filesystem::remove(checkpoint(step));
  }
  Ended resume(const std::vector<std::string>& more, const ProcessOptions& options = {}) const {
    std::vector<std::string> arguments{"train", "--resume", "--run-dir", run_dir()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments, options);
  }
  // That all who take the best take another checkpoint, and say why.
  void expect_refused(const std::string& why, const std::string& taken) {
    const std::string out = folder_ / "out";
    write_text(folder_ / "prune.yaml", "sparsity: {algorithm: magnitude, sparsity: 0.5}\n");
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"eval", run_dir()},
             {"inspect", run_dir()},
             {"export", run_dir(), "--format", "safetensors", "--out", out + ".safetensors"},
             {"prune", run_dir(), folder_ / "prune.yaml", "--run-dir", out + "1"},
             {"train", config(), "--run-dir", out + "2", "--init-from", run_dir()}}) {
      const Ended ended = run_lacuna(arguments);
      EXPECT_EQ(ended.code, 0) << arguments[0] << ended.err;
      EXPECT_THAT(ended.err,
                  AllOf(HasSubstr(why), HasSubstr("using the last checkpoint '" + taken + "'")))
          << arguments[0];
    }
  }
};

const std::vector<std::string> kOtherCourse{"--change", "--set", "optimizer.lr=0.0000001"};

TEST_F(StaleBest, OfALaterStepIsSetAsideOnResume) {
  go_back();
  const std::string stale = read_text(best());
  const Ended ended = resume(kOtherCourse);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("best.h5' is of step 40, and the run has come to step 20; it is "
                                   "set aside as best.h5.stale"));
  EXPECT_EQ(read_text(best() + ".stale"), stale);
  const int64_t step = summary(run_dir()).required<int64_t>("best_step");
  EXPECT_EQ(std::filesystem::exists(best()), step > 20);
  if (step > 20) {
    EXPECT_EQ(read_checkpoint(best()).step, step);
  }
  EXPECT_THAT(run_lacuna({"eval", run_dir()}).err, Not(HasSubstr("warning")));
}

// The evaluation of step 20, which its checkpoint was saved before, is made again first.
TEST_F(StaleBest, IsSetAsideBeforeTheFirstEvaluation) {
  go_back();
  EXPECT_EQ(resume(kOtherCourse, {.fault = "step.between:2"}).code, -9);
  EXPECT_EQ(read_checkpoint(best()).step, 20);
  EXPECT_EQ(read_checkpoint(best() + ".stale").step, 40);
  EXPECT_EQ(run_lacuna({"eval", run_dir()}).code, 0);
}

// As earlier versions left it.
TEST_F(StaleBest, OfAnAbandonedCourseIsNotTaken) {
  const std::string stale = read_text(best());
  go_back();
  ASSERT_EQ(resume(kOtherCourse).code, 0);
  write_text(best(), stale);
  const int64_t step = summary(run_dir()).required<int64_t>("best_step");
  expect_refused(step == 40 ? "has a validation loss of" : "is of step 40, and the run's best of",
                 checkpoint(40));
}

TEST_F(StaleBest, OfAnotherRunIsNotTaken) {
  ASSERT_EQ(train({"--seed", "9"}, "other").code, 0);
  write_text(best(), read_text(run_dir("other") + "/checkpoints/best.h5"));
  expect_refused("is of another run, with another seed", checkpoint(40));
  EXPECT_EQ(resume({"--set", "train.steps=50"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(best() + ".stale"));
}

// A run that was killed between the evaluation and its checkpoint has its best in metrics.jsonl.
TEST_F(StaleBest, OfAStepAfterTheNewestCheckpointIsTakenByTheMetrics) {
  go_back();
  const Ended taken = run_lacuna({"eval", run_dir()});
  EXPECT_THAT(taken.err, AllOf(HasSubstr("using " + best()), Not(HasSubstr("warning"))));
  std::string metrics;
  for (const Config& event : events(run_dir())) {
    if (event.required<int64_t>("step") < 40) metrics += event.to_json() + "\n";
  }
  write_text(run_dir() + "/metrics.jsonl", metrics);
  expect_refused("is of step 40, and metrics.jsonl has no evaluation there", checkpoint(20));
}

TEST_F(StaleBest, ThatIsNoLongerKeptIsSetAside) {
  const Ended ended =
      resume({"--set", "train.checkpoint.keep_best=false", "--set", "train.steps=60"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ASSERT_GT(summary(run_dir()).required<int64_t>("best_step"), 40);
  EXPECT_FALSE(std::filesystem::exists(best()));
  EXPECT_THAT(ended.err, HasSubstr("best.h5' is no longer the best"));
}

TEST_F(BestCheckpoint, LastIsForAFolder) {
  begin();
  const std::string weights = folder_ / "w.safetensors";
  ASSERT_EQ(run_lacuna({"export", run_dir(), "--format", "safetensors", "--out", weights}).code, 0);
  write_text(folder_ / "prune.yaml", "sparsity: {algorithm: magnitude, sparsity: 0.5}\n");
  const std::string out = folder_ / "out";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"eval", best()},
           {"inspect", best()},
           {"predict", best(), best(), "--out", out},
           {"export", best(), "--format", "npz", "--out", out},
           {"prune", best(), folder_ / "prune.yaml", "--run-dir", out},
           {"train", config(), "--run-dir", out, "--init-from", best()},
           {"train", config(), "--run-dir", out, "--init-from", weights}}) {
    std::vector<std::string> with_last = arguments;
    with_last.emplace_back("--last");
    const Ended ended = run_lacuna(with_last);
    EXPECT_EQ(ended.code, 2) << arguments[0];
    EXPECT_THAT(ended.err, AllOf(HasSubstr("error: --last is for a run folder"),
                                 HasSubstr("is a file and is used itself")))
        << arguments[0];
  }
  EXPECT_THAT(
      run_lacuna({"prune", weights, folder_ / "prune.yaml", "--run-dir", out, "--last"}).err,
      HasSubstr("error: --last is for a run folder"));
  EXPECT_THAT(run_lacuna({"eval", folder_ / "nowhere", "--last"}).err,
              AllOf(HasSubstr("nowhere"), Not(HasSubstr("--last is for"))));
  const Ended alone = train({"--last"}, "new");
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--last needs --init-from"));
  EXPECT_THAT(listing(folder_.path()), Not(HasSubstr("out")));
}

}  // namespace
}  // namespace lacuna::best_checkpoint_test
