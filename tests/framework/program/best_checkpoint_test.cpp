// Which of a run's checkpoints a command takes: the best where one is kept, and says so; the last
// where --last asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna {
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
              HasSubstr("init_from: taking '" + best() + "', the best that the run has kept"));
  EXPECT_THAT(read_text(run_dir("tuned") + "/log.txt"), HasSubstr("taking '" + best()));
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
  EXPECT_THAT(skipping.err, HasSubstr("taking '" + best()));
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
  EXPECT_THAT(shown({run_dir()}).second, HasSubstr("(the best; --last takes the last)"));
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
                               HasSubstr("; the model stays what it was at the last step")));
  EXPECT_EQ(read_text(best()), damaged);
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
                                 HasSubstr("is a file, and taken itself")))
        << arguments[0];
  }
  EXPECT_THAT(
      run_lacuna({"prune", weights, folder_ / "prune.yaml", "--run-dir", out, "--last"}).err,
      HasSubstr("error: --last is for a run folder"));
  EXPECT_THAT(run_lacuna({"eval", folder_ / "nowhere", "--last"}).err,
              AllOf(HasSubstr("nowhere"), Not(HasSubstr("--last is for"))));
  const Ended alone = train({"--last"}, "new");
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--last goes with --init-from"));
  EXPECT_THAT(listing(folder_.path()), Not(HasSubstr("out")));
}

}  // namespace
}  // namespace lacuna
