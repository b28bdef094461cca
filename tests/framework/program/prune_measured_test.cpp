// `lacuna prune` and `lacuna train` with sparsities by measured loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

class PruneMeasured : public RunFixture {
 protected:
  PruneMeasured() {
    write_text(prune_config(),
               "sparsity:\n"
               "  algorithm: wanda\n"
               "  sparsity: 0.6\n"
               "  distribution: measured\n"
               "  param_filter: default\n"
               "  calibration: 40\n");
  }
  std::string prune_config() const { return folder_ / "prune.yaml"; }
  Ended prune(const std::string& to, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"prune", run_dir(), prune_config(), "--run-dir",
                                       run_dir(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  Config table(const std::string& name) const {
    return load_yaml(run_dir(name) + "/loss_table.json");
  }
  StateDict model(const std::string& name) const {
    return find_checkpoint(run_dir(name)).read().state.below("model");
  }
  void expect_refused(const Ended& ended, const std::string& message, const std::string& name) {
    EXPECT_EQ(ended.code, 2) << ended.out;
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(run_dir(name)));
  }
};

TEST_F(PruneMeasured, WritesTheTableThatItChoseBy) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = prune("pruned");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::vector<Config> rows = table("pruned").at("rows").items();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(table("pruned").required<int64_t>("version"), 1);
  EXPECT_EQ(rows[0].required<std::string>("parameter"), "fc1.weight");
  EXPECT_EQ(rows[0].at("losses").items().size(), rows[0].at("sparsities").items().size());
  const Config report = load_yaml(run_dir("pruned") + "/prune.json");
  double kept = 0.0, all = 0.0;
  for (const Config& row : report.at("rows").items()) {
    const double numel = row.required<std::string>("parameter") == "fc1.weight" ? 12 * 784 : 120;
    kept += (1.0 - row.required<double>("sparsity")) * numel;
    all += numel;
  }
  EXPECT_NEAR(kept, 0.4 * all, 1.0);
  // Training goes on from it, and pruning with any number of threads is the same.
  ASSERT_EQ(prune("in two", {"--threads", "2"}).code, 0);
  EXPECT_THAT(differences(model("in two"), model("pruned")), testing::IsEmpty());
  EXPECT_EQ(table("in two"), table("pruned"));
  EXPECT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir("pruned"), "--quiet"}).code, 0);
}

// A table from a run folder gives the same counts without measuring.
TEST_F(PruneMeasured, TakesATableInThePlaceOfMeasuring) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(prune("first").code, 0);
  const Ended again =
      prune("again",
            {"--set", "sparsity.distribution={type: measured, table: " + run_dir("first") + "}"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(differences(model("again"), model("first")), testing::IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(run_dir("again") + "/loss_table.json"));
  // The run's configuration has the table itself.
  const Config kept = load_yaml(run_dir("again") + "/config.yaml");
  EXPECT_EQ(kept.at("sparsity").at("distribution").at("table"), table("first"));
}

// A training takes it too; killed and resumed it is the run that was not.
TEST_F(PruneMeasured, TrainsByATable) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(prune("first").code, 0);
  const std::vector<std::string> rigl = {
      "--set",
      "sparsity={algorithm: rigl, sparsity: 0.6, param_filter: default, update: {freq: 2}, "
      "distribution: {type: measured, table: " +
          run_dir("first") + "/loss_table.json}}"};
  ASSERT_EQ(train(rigl, "whole").code, 0);
  EXPECT_EQ(train(rigl, "killed", {.fault = "step.between:9"}).code, -9);
  std::filesystem::remove(run_dir("first") + "/loss_table.json");  // the run has it
  ASSERT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir("killed")}).code, 0);
  EXPECT_THAT(differences(model("killed"), model("whole")), testing::IsEmpty());
  const auto nonzeros = [&](const std::string& name) {
    return summary(run_dir(name)).at("nnz").text();
  };
  EXPECT_EQ(nonzeros("killed"), nonzeros("whole"));
}

// One-shot pruning within a training measures at its first step.
TEST_F(PruneMeasured, TrainsAfterMeasuringAndIsTheSameAfterAKill) {
  ASSERT_EQ(train().code, 0);
  const std::vector<std::string> pruning = {
      "--set",
      "sparsity={algorithm: admm, sparsity: 0.6, param_filter: default, calibration: 40, "
      "distribution: {type: measured, levels: [0.5, 0.8]}}",
      "--set", "model=" + load_yaml(config()).at("model").to_json()};
  ASSERT_EQ(train(pruning, "whole").code, 0);
  EXPECT_EQ(train(pruning, "killed", {.fault = "step.between:3"}).code, -9);
  EXPECT_EQ(train({"--resume"}, "killed", {.fault = "step.between:9"}).code, -9);
  ASSERT_EQ(train({"--resume"}, "killed").code, 0);
  EXPECT_THAT(differences(model("killed"), model("whole")), testing::IsEmpty());
  EXPECT_EQ(timeless_events(run_dir("killed")), timeless_events(run_dir("whole")));
}

TEST_F(PruneMeasured, RefusesATableOfAnotherModelByItsPlace) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(prune("first").code, 0);
  const auto with = [&](const std::string& file) {
    return prune(
        "bad",
        {"--set", "sparsity.distribution={type: measured, table: " + (folder_ / file) + "}"});
  };
  std::string text = read_text(run_dir("first") + "/loss_table.json");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    const size_t at = copy.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    copy.replace(at, from.size(), to);
    write_text(folder_ / "changed.json", copy);
    return with("changed.json");
  };
  expect_refused(changed("fc1.weight", "fc7.weight"), "there is no parameter 'fc7.weight'", "bad");
  EXPECT_THAT(changed("fc1.weight", "fc7.weight").err, HasSubstr("changed.json:"));
  expect_refused(changed("784", "783"), "'fc1.weight' has shape [12, 784] in this one", "bad");
  expect_refused(changed("\"version\": 1", "\"version\": 9"), "this is version 9 of the table",
                 "bad");
  expect_refused(with("none.json"),
                 "sparsity.distribution.table: the table of losses cannot be read", "bad");
  // A row that is wanted and is not there.
  Config few = table("first");
  Config rows = Config::list();
  rows.push_back(few.at("rows").items()[0].clone());
  few.set("rows", rows);
  write_text(folder_ / "few.json", few.to_json());
  expect_refused(with("few.json"), "no row for 'fc2.weight'", "bad");
}

TEST_F(PruneMeasured, RefusesWhatCannotBeReachedBeforeAnythingIsWritten) {
  ASSERT_EQ(train().code, 0);
  expect_refused(prune("bad", {"--set", "sparsity.distribution={type: measured, levels: [0.5]}"}),
                 "sparsity: a sparsity of 0.6 is more than the table of losses has: the largest "
                 "that can be reached is 0.5",
                 "bad");
  expect_refused(prune("bad", {"--set", "sparsity.algorithm=magnitude", "--set",
                               "sparsity.distribution=measurd"}),
                 "unknown distribution 'measurd'", "bad");
  EXPECT_EQ(
      train({"--set", "sparsity={algorithm: rigl, sparsity: 0.6, distribution: measured}"}, "bad")
          .code,
      2);
  EXPECT_FALSE(std::filesystem::exists(run_dir("bad")));
}

}  // namespace
}  // namespace lacuna
