// What a resumed run changes of its optimizer where --change asks for it, and the record of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/program/resume/resume_changes.h"

namespace lacuna::optimizer_changes_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using OptimizerChanges = ResumeChanges;

// The lines of changes.jsonl.
std::vector<std::string> changes(const std::string& run_dir) {
  std::vector<std::string> lines;
  std::istringstream text(read_text(run_dir + "/changes.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST_F(OptimizerChanges, ChangesTheOptimizerWhereThatIsAskedFor) {
  begin();
  refuses("optimizer.lr=0.1", "; and with --change the optimizer (not its type, ");
  EXPECT_FALSE(std::filesystem::exists(run_dir() + "/changes.jsonl"));
  const Ended ended =
      train({"--resume", "--change", "--set",
             "optimizer.lr={type: cosine, init: 0.02, "
             "half_period: 18}",
             "--set", "optimizer.clip_norm=2", "--set", "optimizer.weight_decay=1e-3"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string line =
      "changed at step 4: optimizer.clip_norm was nothing, and is now 2 (changes";
  EXPECT_THAT(ended.err, HasSubstr(line));
  EXPECT_THAT(read_text(run_dir() + "/log.txt"), HasSubstr(line));
  EXPECT_THAT(
      changes(run_dir()),
      testing::ElementsAre(
          R"({"step": 4, "key": "optimizer.lr", "old": 0.01, "new": {"type": "cosine", "init": 0.02, "half_period": 18, "minimum": 0.0}})",
          R"({"step": 4, "key": "optimizer.clip_norm", "old": null, "new": 2})"));
  const Config now = load_yaml(run_dir() + "/config.yaml").at("optimizer");
  EXPECT_EQ(now.at("lr").at("init").text(), "0.02");
  EXPECT_NEAR(events(run_dir()).back().required<double>("lr"), 0.0, 1e-6);
}

// Killed before the next checkpoint knows of the change, and after it.
TEST_F(OptimizerChanges, AChangedRunGoesOnBitForBit) {
  begin();
  std::filesystem::copy(run_dir(), run_dir("whole"), std::filesystem::copy_options::recursive);
  const std::vector<std::string> change = {"--resume", "--change", "--set", "optimizer.lr=0.03"};
  ASSERT_EQ(train(change, "whole").code, 0);
  ASSERT_EQ(train(change, "run", {.fault = "step.between:2"}).code, -9);        // at step 6
  ASSERT_EQ(train({"--resume"}, "run", {.fault = "step.between:3"}).code, -9);  // 7
  ASSERT_EQ(train({"--resume"}, "run", {.fault = "step.between:7"}).code, -9);  // 11, saved at 8
  const Ended last = train({"--resume"});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_THAT(differences(read_checkpoint(checkpoint(18)).state,
                          read_checkpoint(checkpoint(18, "whole")).state),
              IsEmpty());
  EXPECT_EQ(timeless_events(run_dir()), timeless_events(run_dir("whole")));
  EXPECT_EQ(changes(run_dir()), changes(run_dir("whole")));
  EXPECT_EQ(changes(run_dir()).size(), 1u);
}

TEST_F(OptimizerChanges, AnotherChangeAtTheSameStepTakesItsPlace) {
  begin();
  ASSERT_EQ(train({"--resume", "--change", "--set", "optimizer.lr=0.03"}, "run",
                  {.fault = "step.between:2"})
                .code,
            -9);
  ASSERT_EQ(train({"--resume", "--change", "--set", "optimizer.lr=0.02"}).code, 0);
  EXPECT_THAT(
      changes(run_dir()),
      testing::ElementsAre(R"({"step": 4, "key": "optimizer.lr", "old": 0.01, "new": 0.02})"));
  ASSERT_EQ(
      train({"--resume", "--change", "--set", "optimizer.lr=0.5", "--set", "train.epochs=4"}).code,
      0);
  ASSERT_EQ(changes(run_dir()).size(), 2u);
  EXPECT_EQ(changes(run_dir())[1],
            R"({"step": 18, "key": "optimizer.lr", "old": 0.02, "new": 0.5})");
}

TEST_F(OptimizerChanges, ChangesNothingElseAndNotWhatStatesDependOn) {
  begin();
  const auto refused = [&](const std::string& setting, const std::string& kept) {
    const Ended ended = train({"--resume", "--change", "--set", setting});
    EXPECT_EQ(ended.code, 2) << setting;
    EXPECT_THAT(ended.err, HasSubstr("a resumed run keeps " + kept));
    EXPECT_THAT(ended.err, HasSubstr("; only these may change: "));
    EXPECT_FALSE(std::filesystem::exists(run_dir() + "/changes.jsonl"));
  };
  refused("optimizer.type=sgd", "optimizer.type = adam");
  refused("optimizer={type: sgd, lr: 0.1}", "optimizer = {\"type\": \"adam\"");
  refused("train.seed=3", "train.seed = 0");
  refused("model.1.out_features=9", "model.1.out_features = 12");
  const Ended mistyped = train({"--resume", "--change", "--set", "optimizer.lrr=1"});
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_THAT(mistyped.err, HasSubstr("unknown key 'lrr'"));
  const Ended alone = train({"--change"}, "new");
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--change needs --resume"));
  EXPECT_EQ(train({"--resume"}).code, 0);
}

// By hand, in config.yaml.
TEST_F(OptimizerChanges, AnEditedOptimizerIsRefusedInTheSameWords) {
  begin();
  std::string text = read_text(run_dir() + "/config.yaml");
  text.replace(text.find("lr: 0.01"), 8, "lr: 0.02");
  write_text(run_dir() + "/config.yaml", text);
  const Ended refused = train({"--resume"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("config.yaml, optimizer.lr = 0.02: a resumed run keeps "
                                     "optimizer.lr = 0.01; only these may change: "));
  EXPECT_THAT(refused.err, HasSubstr("with --change the optimizer"));
  EXPECT_EQ(train({"--resume", "--change"}).code, 0);
  EXPECT_THAT(
      changes(run_dir()),
      testing::ElementsAre(R"({"step": 4, "key": "optimizer.lr", "old": 0.01, "new": 0.02})"));
}

// The forms of a schedule that is written differently once the run's length is known.
const std::vector<std::pair<std::string, std::string>> kSchedules = {
    {"lr", "{type: cosine, init: 0.02}"},
    {"lr", "{type: cosine, init: 0.02, half_period: 2 epochs}"},
    {"lr", "{type: multi_step, init: 0.02, milestones: [50 %], gamma: 0.1}"},
    {"warmup", "5 %"},
    {"groups", "[{params: fc1.weight, lr: {type: cosine, init: 0.02}}]"}};

TEST_F(OptimizerChanges, TakesEachFormOfASchedule) {
  begin();
  int number = 0;
  for (const auto& [key, value] : kSchedules) {
    const std::string assignment = "optimizer." + key + "=" + value;
    SCOPED_TRACE(assignment);
    const std::string name = "set-" + std::to_string(++number);
    std::filesystem::copy(run_dir(), run_dir(name), std::filesystem::copy_options::recursive);
    const Ended killed = train({"--resume", "--change", "--set", assignment}, name,
                               {.fault = "step.between:1"});  // before the next checkpoint
    ASSERT_EQ(killed.code, -9) << killed.err;
    EXPECT_EQ(changes(run_dir(name)).size(), 1u);
    const Ended ended = train({"--resume"}, name);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(changes(run_dir(name)).size(), 1u);
  }
}

TEST_F(OptimizerChanges, TakesEachFormOfAScheduleFromAnEditedFile) {
  begin();
  int number = 0;
  for (const auto& [key, value] : kSchedules) {
    SCOPED_TRACE(key + ": " + value);
    const std::string name = "edited-" + std::to_string(++number);
    std::filesystem::copy(run_dir(), run_dir(name), std::filesystem::copy_options::recursive);
    const std::string file = run_dir(name) + "/config.yaml";
    Config config = load_yaml(file);
    config.get("optimizer").set(key, parse_yaml("value: " + value, "value").get("value"));
    write_text(file, config.to_yaml());
    const Ended ended = run_lacuna({"train", "--resume", "--change", "--run-dir", run_dir(name)});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(changes(run_dir(name)).size(), 1u);
  }
}

TEST_F(OptimizerChanges, RefusesARecordOfChangesThatIsNone) {
  begin();
  write_text(run_dir() + "/changes.jsonl", "{\"step\": 1}\n");
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("changes.jsonl:1: no change of a configuration: "));
  std::filesystem::remove(run_dir() + "/changes.jsonl");
  std::filesystem::create_symlink(config(), run_dir() + "/changes.jsonl");
  EXPECT_THAT(train({"--resume"}).err, HasSubstr("changes.jsonl': it is a link"));
}

}  // namespace
}  // namespace lacuna::optimizer_changes_test
