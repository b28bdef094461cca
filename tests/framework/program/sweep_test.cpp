// `lacuna sweep`, `report` and `compare` as a user calls them.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "framework/program/runs.h"
#include "lacuna/framework/io/storage/folder_lock.hpp"

namespace lacuna::sweep_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class SweepTest : public RunFixture {
 protected:
  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"sweep", config(), "--run-dir", run_dir("sweep")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Ended sweep(const std::vector<std::string>& more, const ProcessOptions& options = {}) const {
    return run_lacuna(arguments(more), options);
  }
  std::string part(const std::string& name) const { return run_dir("sweep") + "/" + name; }
};

TEST_F(SweepTest, SaysHowManySeedsAndJobsThereMayBe) {
  for (const char* count : {"0", "-1", "1.5", "many", "100001"}) {
    const Ended seeds = sweep({"--seeds", count});
    EXPECT_EQ(seeds.code, 2) << count;
    EXPECT_THAT(seeds.err,
                HasSubstr("--seeds: expected a number of seeds from 1 to 100000, found " +
                          std::string(count)));
    EXPECT_THAT(sweep({"--jobs", count}).err,
                HasSubstr("--jobs: expected a number of runs at the same time from 1 to 100000"));
  }
}

TEST_F(SweepTest, TrainsEachRunAndTellsMeanAndSpread) {
  const Ended ended = sweep({"--over", "optimizer.lr=0.01,0.001", "--seeds", "2", "--jobs", "2"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("optimizer.lr=0.01"));
  EXPECT_THAT(ended.out, HasSubstr(" ± "));
  EXPECT_EQ(listing(run_dir("sweep")),
            "lr=0.001,seed=0 lr=0.001,seed=1 lr=0.01,seed=0 lr=0.01,seed=1 report.html sweep.yaml");
  const Config run = load_yaml(part("lr=0.001,seed=1/config.yaml"));
  EXPECT_EQ(run.at("optimizer").at("lr").as<double>(), 0.001);
  EXPECT_EQ(run.at("train").at("seed").as<int64_t>(), 1);
  EXPECT_THAT(read_text(part("report.html")), HasSubstr("Mean and spread over seeds"));

  // Once more: nothing is trained again, a run that was interrupted goes on.
  std::filesystem::remove(part("lr=0.01,seed=1/summary.json"));
  const std::string before = read_text(part("lr=0.01,seed=0/log.txt"));
  write_text(part("lr=0.01,seed=0.log"), "the run had ended when its sweep was killed\n");
  const Ended again = sweep({"--over", "optimizer.lr=0.01,0.001", "--seeds", "2", "--jobs", "2"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("lr=0.01,seed=1: goes on"));
  EXPECT_THAT(again.err, HasSubstr("lr=0.01,seed=0: has finished already"));
  EXPECT_EQ(read_text(part("lr=0.01,seed=0/log.txt")), before);
  EXPECT_FALSE(std::filesystem::exists(part("lr=0.01,seed=0.log")));
  EXPECT_EQ(again.out, ended.out);
}

TEST_F(SweepTest, RunsNamedSettingsAndDraws) {
  write_text(folder_ / "named.yaml",
             "dense: {}\nsparse: {sparsity: {algorithm: static, sparsity: 0.5}}\n");
  ASSERT_EQ(sweep({"--over", folder_ / "named.yaml"}).code, 0);
  EXPECT_EQ(listing(run_dir("sweep")), "dense,seed=0 report.html sparse,seed=0 sweep.yaml");
  EXPECT_EQ(load_yaml(part("sparse,seed=0/config.yaml")).peek("sparsity.sparsity").text(), "0.5");
  const Ended drawn = run_lacuna({"sweep", config(), "--run-dir", run_dir("drawn"), "--over",
                                  "optimizer.lr=log:1e-3..1e-2", "--random", "2"});
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_THAT(drawn.err, HasSubstr("2 runs are planned"));
  EXPECT_EQ(sweep({"--random-seed", "1", "--over", "optimizer.lr=0.01"}).code, 2);
}

// Its runs go on where they are.
TEST_F(SweepTest, FindsRunsUnderTheLongNamesOfEarlierVersions) {
  ASSERT_EQ(sweep({"--over", "optimizer.lr=0.01"}).code, 0);
  std::filesystem::rename(part("lr=0.01,seed=0"), part("optimizer.lr=0.01,seed=0"));
  const Ended again = sweep({"--over", "optimizer.lr=0.01,0.001"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("has finished already"));
  EXPECT_EQ(listing(run_dir("sweep")),
            "lr=0.001,seed=0 optimizer.lr=0.01,seed=0 report.html sweep.yaml");
}

TEST_F(SweepTest, LeavesNoFolderWhereItCannotBePlanned) {
  EXPECT_EQ(sweep({"--over", "optimizer.lr=0.01,-1"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(run_dir("sweep")));
  std::filesystem::create_directory(run_dir("sweep"));
  EXPECT_EQ(sweep({"--over", "optimizer.lr=0.01,-1"}).code, 2);
  EXPECT_TRUE(std::filesystem::exists(run_dir("sweep")));  // it was there before
}

// Its folder stands for its runs wherever runs are looked at.
TEST_F(SweepTest, IsLookedAtByItsFolder) {
  ASSERT_EQ(sweep({"--over", "optimizer.lr=0.01,0.001"}).code, 0);
  ASSERT_EQ(train({}, "alone").code, 0);
  const Ended compared = run_lacuna({"compare", run_dir("sweep"), run_dir("alone"), "--csv"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  for (const char* name : {"lr=0.01,seed=0", "lr=0.001,seed=0", "alone"}) {
    EXPECT_THAT(compared.out, HasSubstr(name));
  }
  const Ended report = run_lacuna({"report", run_dir("sweep"), "--out", folder_ / "page.html"});
  EXPECT_THAT(report.out, HasSubstr("is written: 2 runs"));
  // What differs in few keys stands in a line for each run.
  const Ended table = run_lacuna({"compare", run_dir("sweep")});
  EXPECT_THAT(table.out, HasSubstr("\ndiffers in  optimizer.lr\n"
                                   "lr=0.001           0.001\n"
                                   "lr=0.01             0.01\n"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(run_lacuna({"compare", folder_ / "empty"}).err, HasSubstr("has no config.yaml"));
  write_text(folder_ / "empty/sweep.yaml", "{}");
  EXPECT_THAT(run_lacuna({"compare", folder_ / "empty"}).err, HasSubstr("has no run yet"));
}

TEST_F(SweepTest, GoesOnWithARunWhoseSummaryIsDamaged) {
  ASSERT_EQ(sweep({"--seeds", "2"}).code, 0);
  const std::string whole = read_text(part("seed=0/summary.json"));
  write_text(part("seed=0/summary.json"), whole.substr(0, whole.size() / 2));
  std::filesystem::remove(part("seed=1/config.yaml"));
  const Ended ended = sweep({"--seeds", "2"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("seed=0: goes on"));
  EXPECT_THAT(ended.err, HasSubstr("seed=1 failed (exit code 1)"));
  EXPECT_TRUE(summary(part("seed=0")).has("steps"));
}

TEST_F(SweepTest, NamesARunThatFailsAndGoesOnWithTheOthers) {
  const Ended ended = sweep({"--over", "optimizer.lr=1e30,0.01"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("lr=1e30,seed=0 failed (exit code 1)"));
  EXPECT_THAT(read_text(part("lr=1e30,seed=0.log")), HasSubstr("NaN or infinite"));
  EXPECT_TRUE(std::filesystem::exists(part("lr=0.01,seed=0/summary.json")));
}

TEST_F(SweepTest, RefusesRunsOfOtherSettingsInOneFolder) {
  ASSERT_EQ(sweep({"--over", "optimizer.lr=0.01", "--set", "train.epochs=1"}).code, 0);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message) {
    const Ended ended = sweep(more);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_EQ(ended.out, "");
  };
  refused({"--over", "optimizer.lr=0.01,0.1", "--set", "train.epochs=2"},
          "sweep.yaml): train.epochs was 1, and is now 2; give these, or another --run-dir");
  refused({"--over", "optimizer.lr=0.01", "--set", "optimizer.lr=0.5"},
          "--set optimizer.lr=0.5: --over already varies optimizer.lr");
  refused({"--over", "run_dir=a,b"}, "--over run_dir: the runs' folders are in --run-dir");
  // More of the same, on other threads.
  const Ended more = sweep({"--over", "optimizer.lr=0.01,0.1", "--seeds", "2", "--set",
                            "train.epochs=1", "--set", "train.threads=2"});
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.err, HasSubstr("lr=0.01,seed=0: has finished already"));
}

// Each run is held against what it was given, not only against what all have in common.
TEST_F(SweepTest, RefusesOtherSettingsUnderTheNameOfARun) {
  const std::string named = folder_ / "named.yaml";
  const auto write_named = [&](const std::string& sparse) {
    write_text(named, "plain: {}\nsparse: " + sparse + "\n");
  };
  const auto sweep_with = [&](const std::string& rate) {
    Config base = load_yaml(config());
    base.set_path("optimizer.lr", Config::plain(rate));
    write_text(folder_ / "base.yaml", base.to_yaml());
    return run_lacuna(
        {"sweep", folder_ / "base.yaml", "--run-dir", run_dir("sweep"), "--over", named});
  };
  const auto refused = [&](const std::string& rate, const std::string& message) {
    const std::string before = read_text(part("sweep.yaml"));
    const Ended ended = sweep_with(rate);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_EQ(read_text(part("sweep.yaml")), before);
  };
  write_named("{optimizer.lr: 0.02}");
  ASSERT_EQ(sweep_with("0.01").code, 0);
  write_named("{optimizer.lr: 0.03}");
  refused("0.01",
          "the run 'sparse,seed=0' has other settings (" + part("sweep.yaml") +
              "): optimizer.lr was 0.02, and is now 0.03; give these, or another --run-dir");
  write_named("{optimizer.lr: 0.02}");
  refused("0.04",
          "the run 'plain,seed=0' has other settings (" + part("sweep.yaml") +
              "): optimizer.lr was 0.01, and is now 0.04; give these, or another --run-dir");
  const Ended again = sweep_with("1e-2");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("sparse,seed=0: has finished already"));
  // A run that keeps the configuration's value where it had one of its own.
  write_named("{}");
  refused("0.01", "optimizer.lr was 0.02, and is now 0.01; give these");
}

TEST_F(SweepTest, RefusesTheFolderOfARun) {
  ASSERT_EQ(train({}, "sweep").code, 0);
  const std::string before = listing(run_dir("sweep"));
  const Ended ended = sweep({"--seeds", "2"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("sweep' holds a run; give another folder: the runs of a sweep "
                                   "need one of their own"));
  EXPECT_EQ(listing(run_dir("sweep")), before);
}

TEST_F(SweepTest, PlansEachCombinationBeforeTheFirstRun) {
  const Ended unknown = sweep({"--over", "sparsity.sparsty=0.8,0.9"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("error: sparsty=0.8,seed=0: --set "
                                     "sparsity.sparsty=0.8: sparsity.sparsty: unknown key"));
  const Ended late = sweep({"--over", "train.steps=2,x"});
  EXPECT_EQ(late.code, 2);
  EXPECT_THAT(late.err, HasSubstr("steps=x,seed=0: "));
  EXPECT_EQ(sweep({"--set", "optimizer.lrr=1"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(run_dir("sweep")));
  EXPECT_EQ(sweep({"--set", "train.steps=2"}).code, 0);  // what was mended is not refused
}

// Early stopping goes back to the best model, which is what such a run has come to.
TEST_F(SweepTest, TellsTheBestWhereItIsKept) {
  const Ended ended = sweep({"--seeds", "1", "--set", "optimizer={type: sgd, lr: 0.5}", "--set",
                             "train.early_stopping={patience: 2}", "--set", "train.epochs=40"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config told = summary(part("seed=0"));
  ASSERT_TRUE(told.required<bool>("stopped_early"));
  ASSERT_NE(told.at("test_accuracy").text(), told.at("best_test_accuracy").text());
  char best[32];
  std::snprintf(best, sizeof best, " %.2f %%", 100.0 * told.required<double>("best_test_accuracy"));
  EXPECT_THAT(ended.out, HasSubstr(best));
}

TEST_F(SweepTest, HandsASignalOnAndGoesOnLater) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string name = signal == SIGTERM ? "terminated" : "interrupted";
    std::vector<std::string> all{"sweep",     config(),
                                 "--run-dir", run_dir(name),
                                 "--seeds",   "2",
                                 "--set",     "train.epochs=100000",
                                 "--set",     "train.checkpoint.every=100000 steps"};
    const pid_t child = ::fork();
    if (child == 0) internal::become(all, {}, folder_ / "out", folder_ / "err");
    const std::string run = run_dir(name) + "/seed=0";
    while (read_text(run + "/metrics.jsonl").size() < 500) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    EXPECT_THAT(read_text(run + "/log.txt"), HasSubstr("stopped at step"));
    EXPECT_FALSE(std::filesystem::exists(run_dir(name) + "/seed=1"));
    EXPECT_GT(RunFolder::open(run).checkpoint_steps().front(), 0);
  }
}

TEST_F(SweepTest, RefusesAKeyThatCannotBeSetBeforeAnythingRuns) {
  for (const char* over : {"optimizer.lr.deeper=1", "model.sparse_gradient=true,false"}) {
    const Ended ended = sweep({"--over", over});
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.err, HasSubstr(std::string("--set ") + std::string(over).substr(0, 20)));
    EXPECT_FALSE(std::filesystem::exists(run_dir("sweep")));
  }
}

TEST_F(SweepTest, SetsWhatTrainSets) {
  write_text(config(), read_text(config()) + "loss: cross_entropy\n" +
                           "sparsity: [{algorithm: static, sparsity: 0.5}]\n");
  const std::string over = "loss.label_smoothing=0.1";
  ASSERT_EQ(sweep({"--over", over, "--set", "sparsity.layout=masked"}).code, 0);
  EXPECT_THAT(read_text(part("label_smoothing=0.1,seed=0") + "/config.yaml"),
              testing::AllOf(HasSubstr("label_smoothing: 0.1"), HasSubstr("layout: masked")));
}

TEST_F(RunFixture, CompareAndReportShowRunsOfEveryKind) {
  ASSERT_EQ(train({}, "dense").code, 0);
  ASSERT_EQ(
      train({"--set", "sparsity={algorithm: set, sparsity: 0.5, update: {freq: 2}}"}, "set").code,
      0);
  train({}, "killed", {.fault = "step.between:9"});
  const std::vector<std::string> runs = {run_dir("dense"), run_dir("set"), run_dir("killed")};
  std::vector<std::string> compare = {"compare"};
  compare.insert(compare.end(), runs.begin(), runs.end());
  EXPECT_THAT(run_lacuna(compare).out, HasSubstr("differs in"));
  compare.push_back("--json");
  const Config json = parse_yaml(run_lacuna(compare).out, "json");
  ASSERT_EQ(json.at("runs").items().size(), 3u);
  for (const Config& row : json.at("runs").items()) {
    const bool was_killed = row.at("run").text() == "killed";
    EXPECT_EQ(row.at("state").text(), was_killed ? "unfinished" : "finished");
    EXPECT_EQ(row.get("nnz").is_null(), was_killed);
  }
  compare.push_back("--csv");
  EXPECT_EQ(run_lacuna(compare).code, 2);

  EXPECT_EQ(listing(run_dir("set") + "/masks"),
            "step-0000000000.h5 step-0000000004.h5 step-0000000009.h5 step-0000000013.h5 "
            "step-0000000018.h5");
  EXPECT_FALSE(std::filesystem::exists(run_dir("dense") + "/masks"));
  std::vector<std::string> report = {"report", runs[0], runs[1],
                                     runs[2],  "--out", folder_ / "page.html"};
  EXPECT_EQ(run_lacuna(report).code, 0);
  EXPECT_THAT(read_text(folder_ / "page.html"), HasSubstr("fc1.weight at step 18"));
  report.back() = run_dir("set") + "/log.txt";
  const Ended refused = run_lacuna(report);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("is among the files of the run"));
  // A page is written over a page, and over nothing else.
  report.back() = folder_ / "page.html";
  EXPECT_EQ(run_lacuna(report).code, 0);
  write_text(folder_ / "notes.txt", "of somebody's");
  report.back() = folder_ / "notes.txt";
  const Ended other = run_lacuna(report);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("notes.txt' exists and is not a report"));
  EXPECT_EQ(read_text(folder_ / "notes.txt"), "of somebody's");
  report.back() = "-";
  EXPECT_EQ(run_lacuna(report).code, 2);

  // Lines of metrics that cannot be read are told by the table, too.
  std::ofstream(run_dir("set") + "/metrics.jsonl", std::ios::app) << "no event\n";
  const Ended compared = run_lacuna({"compare", runs[0], run_dir("set")});
  EXPECT_EQ(compared.code, 0);
  EXPECT_THAT(compared.err, HasSubstr("1 line of metrics.jsonl could not be read and is left out"));

  // A run of before there were masks/ shows what its checkpoints hold.
  std::filesystem::remove_all(run_dir("set") + "/masks");
  EXPECT_EQ(run_lacuna({"report", run_dir("set"), "--out", folder_ / "old.html"}).code, 0);
  EXPECT_THAT(read_text(folder_ / "old.html"), HasSubstr("fc1.weight at step 18"));
}

TEST_F(SweepTest, IsOneAtATimeInAFolder) {
  std::filesystem::create_directory(run_dir("sweep"));
  {
    const FolderLock other(run_dir("sweep"));
    const Ended ended = sweep({"--seeds", "2"});
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr("another sweep is running in '" + run_dir("sweep") + "'"));
    EXPECT_EQ(listing(run_dir("sweep")), "");
  }
  EXPECT_EQ(sweep({"--seeds", "2"}).code, 0);
}

// As one of a sweep that was killed, which saves a checkpoint and ends.
TEST_F(SweepTest, WaitsForARunThatIsStillEnding) {
  std::filesystem::create_directories(part("seed=0"));
  auto lock = std::make_unique<FolderLock>(part("seed=0"));
  const std::string messages = folder_ / "messages";
  const auto into_messages = [&] {
    ::dup2(::open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  };
  const auto is_waiting = [&] {
    return std::filesystem::exists(messages) &&
           read_text(messages).find("another process is training in it; waiting until it ends") !=
               std::string::npos;
  };
  const Ended ended =
      sweep({"--seeds", "1"}, {.in_child = into_messages, .meanwhile = [&](pid_t child) {
                                 for (int i = 0; i < 6000 && !is_waiting(); ++i) {
                                   std::this_thread::sleep_for(std::chrono::milliseconds(10));
                                 }
                                 EXPECT_EQ(::kill(child, 0), 0);
                                 EXPECT_FALSE(std::filesystem::exists(part("seed=0/config.yaml")));
                                 lock.reset();
                               }});
  EXPECT_EQ(ended.code, 0) << read_text(messages);
  EXPECT_TRUE(is_waiting()) << read_text(messages);
}

TEST_F(SweepTest, LeavesItsConfigurationAlone) {
  std::filesystem::create_directory(run_dir("sweep"));
  for (const char* name : {"plan.log", "report.html", "seed=0.log"}) {
    write_text(part(name), kTinyRun);
    const Ended ended = run_lacuna({"sweep", part(name), "--run-dir", run_dir("sweep")});
    EXPECT_EQ(ended.code, 2) << name;
    EXPECT_THAT(ended.err, HasSubstr("is the input file '"));
    EXPECT_EQ(read_text(part(name)), kTinyRun);
    std::filesystem::remove(part(name));
  }
}

TEST_F(SweepTest, ReportChecksItsArgumentsFirst) {
  ASSERT_EQ(train({}, "good").code, 0);
  write_text(run_dir("good") + "/summary.json", "{damaged");  // reading it would be remarked on
  const auto report = [&](const std::string& run, const std::string& out) {
    return run_lacuna({"report", run_dir("good"), run, "--out", out});
  };
  EXPECT_THAT(report(run_dir("none"), folder_ / "a.html").err, HasSubstr("there is no run folder"));
  EXPECT_THAT(report(run_dir("good"), folder_ / "no/a.html").err, HasSubstr("there is no folder"));
  EXPECT_THAT(report(run_dir("good"), folder_.path()).err, HasSubstr("is a folder"));
}

}  // namespace
}  // namespace lacuna::sweep_test
