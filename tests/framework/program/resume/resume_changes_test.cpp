// What a resumed run lets one change, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/resume/resume_changes.h"

namespace lacuna::resume_changes_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(ResumeChanges, OfTheFolderIsNone) {
  begin();
  refuses("run_dir=elsewhere", "--set run_dir=elsewhere: a run continues in its own folder");
}

TEST_F(ResumeChanges, OfWhereATableIs) {
  write_text(folder_ / "train.csv", table_of_numbers(40));
  write_text(config(),
             "data: {type: csv, train: " + (folder_ / "train.csv") +
                 "}\nmodel: [{type: linear, out_features: 2}]\n"
                 "optimizer: {type: adam}\n"
                 "train: {steps: 8, batch_size: 10, threads: 1, checkpoint: {every: 2}}\n");
  begin();
  std::filesystem::rename(folder_ / "train.csv", folder_ / "moved.csv");
  EXPECT_EQ(train({"--resume"}).code, 1);
  const Ended moved = train({"--resume", "--set", "data.train=" + (folder_ / "moved.csv")});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 8);
}

TEST_F(ResumeChanges, RefusesWhatWouldMakeItAnotherRun) {
  begin();
  refuses("optimizer.lr=0.1",
          "error: --set optimizer.lr=0.1: a resumed run keeps optimizer.lr = 0.01; only these may "
          "change: train.epochs, train.steps, train.threads, train.log_every, ");
  refuses("train.seed=3", "a resumed run keeps train.seed = 0;");
  refuses("train.batch_size=9", "keeps train.batch_size = 8;");
  refuses("model.1.out_features=9", "keeps model.1.out_features = 12;");
  refuses("data.validation=0.2", "keeps data.validation = 10;");
  refuses("sparsity=0.5", "keeps sparsity = nothing;");
  refuses("train={epochs: 4}", "a resumed run keeps train = {");
  refuses("train.epochz=4", "keeps train.epochz = nothing;");
  refuses("train.checkpoint.evry=4", "unknown key 'evry'; did you mean 'every'?");
  refuses("train.checkpoint.every=0", "expected a number of steps of at least 1");
  refuses("train.early_stopping={patience: 2}", "keeps train.early_stopping = nothing;");
  const Ended seed = train({"--resume", "--seed", "4"});
  EXPECT_EQ(seed.code, 2);
  EXPECT_THAT(seed.err, HasSubstr("a resumed run keeps train.seed = 0"));
  EXPECT_EQ(train({"--resume"}).code, 0);
}

TEST_F(ResumeChanges, TakesAKeySetToTheValueItHasForNoChange) {
  begin();
  EXPECT_EQ(train({"--resume", "--seed", "0", "--set", "optimizer.lr=1e-2", "--set",
                   "model.1.out_features=12"})
                .code,
            0);
}

TEST_F(ResumeChanges, AllowsWhatDoesNotTouchTheNumbers) {
  ASSERT_EQ(train({}, "whole").code, 0);
  begin();
  const Ended ended =
      train({"--resume", "--threads", "2", "--set", "train.log_every=1", "--set",
             "train.eval_every=2 epochs", "--set", "train.checkpoint={every: 6, keep_last: 1}"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(listing(run_dir() + "/checkpoints"), "step-0000000018.h5");
  const Config kept = load_yaml(run_dir() + "/config.yaml").at("train");
  EXPECT_EQ(kept.at("threads").text(), "2");
  EXPECT_EQ(kept.at("eval_every").text(), "2 epochs");
  const StateDict a = read_checkpoint(checkpoint(18)).state;
  const StateDict b = read_checkpoint(checkpoint(18, "whole")).state;
  for (const char* part : {"model", "optimizer", "loader"}) {
    EXPECT_THAT(differences(a.below(part), b.below(part)), IsEmpty()) << part;
  }
}

// A new run of this length would be refused.
TEST_F(ResumeChanges, WarnOfALengthThatDoesNotFitTheSparsity) {
  ASSERT_EQ(train({"--set", "sparsity={algorithm: acdc, sparsity: 0.8, update: {freq: 6}}"}).code,
            0);
  const Ended same = train({"--resume"});
  EXPECT_EQ(same.code, 0);
  EXPECT_THAT(same.err, Not(HasSubstr("sparsity section")));
  const Ended longer = train({"--resume", "--set", "train.epochs=4"});
  EXPECT_EQ(longer.code, 0);
  EXPECT_THAT(longer.err, HasSubstr("in 24 steps, the run does not do what its sparsity section "
                                    "states: "));
  EXPECT_THAT(longer.err, HasSubstr("leave the network dense at the end"));
  const Ended longest = train({"--resume", "--set", "train.epochs=6"});
  EXPECT_EQ(longest.code, 0);
  EXPECT_THAT(longest.err, HasSubstr("in 36 steps, the run does not do what"));
}

// As those of one-shot pruning: the first phase leaves nothing for a plan of the whole to change.
TEST_F(ResumeChanges, DoNotWarnOfPhasesThatAreMadeLonger) {
  ASSERT_EQ(train({"--set",
                   "sparsity={phases: [{until: 4, algorithm: wanda, sparsity: 0.5, calibration: "
                   "32}, {algorithm: static, sparsity: 0.8}]}"})
                .code,
            0);
  const Ended longer = train({"--resume", "--set", "train.epochs=4"});
  EXPECT_EQ(longer.code, 0);
  EXPECT_THAT(longer.err, Not(HasSubstr("sparsity section")));
}

TEST_F(ResumeChanges, ContinuesAFinishedRunThatIsMadeLonger) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = train({"--resume", "--set", "train.epochs=4"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("resumed at step 18"));
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 24);
  // The model is that of a run of four epochs.
  ASSERT_EQ(train({"--set", "train.epochs=4"}, "long").code, 0);
  EXPECT_THAT(differences(read_checkpoint(checkpoint(24)).state.below("model"),
                          read_checkpoint(checkpoint(24, "long")).state.below("model")),
              IsEmpty());
  EXPECT_EQ(train({"--resume", "--set", "train.steps=25"}).code, 0);
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 25);
}

// Whose evaluations have no accuracy.
TEST_F(ResumeChanges, ContinuesARegressionThatIsMadeLonger) {
  std::string table = "x,y\n";
  for (int i = 0; i < 20; ++i) table += std::to_string(i) + "," + std::to_string(3 - 2 * i) + "\n";
  write_text(folder_ / "table.csv", table);
  write_text(config(), "data: {type: csv, task: regression, train: " + (folder_ / "table.csv") +
                           ", test: " + (folder_ / "table.csv") +
                           "}\n"
                           "model: [{type: linear, out_features: 1}]\n"
                           "optimizer: {type: sgd, lr: 0.1}\n"
                           "train: {epochs: 2, batch_size: 10}\n");
  ASSERT_EQ(train().code, 0);
  const Ended longer = train({"--resume", "--set", "train.epochs=3"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  ASSERT_EQ(train({"--set", "train.epochs=3"}, "long").code, 0);
  EXPECT_THAT(differences(read_checkpoint(checkpoint(6)).state.below("model"),
                          read_checkpoint(checkpoint(6, "long")).state.below("model")),
              IsEmpty());
}

TEST_F(ResumeChanges, LeavesNoSummaryOfAnEarlierEnd) {
  ASSERT_EQ(train().code, 0);
  EXPECT_EQ(train({"--resume", "--set", "train.epochs=4"}, "run", {.fault = "step.between:2"}).code,
            -9);
  EXPECT_FALSE(std::filesystem::exists(run_dir() + "/summary.json"));
}

TEST_F(ResumeChanges, EndsARunWhereItStandsButNotBefore) {
  begin();
  refuses("train.steps=3",
          "the run has already done 4 steps, more than the requested 3 steps: give train.epochs or "
          "train.steps a larger value");
  EXPECT_EQ(train({"--resume", "--set", "train.steps=4"}).code, 0);
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 4);
  EXPECT_TRUE(summary(run_dir()).has("test_accuracy"));
  // Resumed once more it ends in the same way, and says nothing twice.
  const std::vector<std::string> told = timeless_events(run_dir());
  EXPECT_EQ(train({"--resume"}).code, 0);
  EXPECT_EQ(timeless_events(run_dir()), told);
}

TEST_F(ResumeChanges, ChangesNothingInAFinishedRun) {
  ASSERT_EQ(train().code, 0);
  const std::vector<std::string> told = timeless_events(run_dir());
  const std::string accuracy = summary(run_dir()).at("test_accuracy").text();
  const std::string checkpoints = listing(run_dir() + "/checkpoints");
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("nothing is left to train: the run has ended at step 18"));
  EXPECT_EQ(timeless_events(run_dir()), told);
  EXPECT_EQ(summary(run_dir()).at("test_accuracy").text(), accuracy);
  EXPECT_EQ(listing(run_dir() + "/checkpoints"), checkpoints);
}

TEST_F(ResumeChanges, CutsMetricsBackToTheCheckpoint) {
  begin();
  EXPECT_EQ(events(run_dir()).back().at("step").text(), "6");
  EXPECT_EQ(train({"--resume", "--set", "train.steps=4"}).code, 0);
  for (const Config& event : events(run_dir())) EXPECT_LE(event.required<int>("step"), 4);
}

TEST_F(ResumeChanges, ShowsHowAGivenModelDiffers) {
  begin();
  std::string text = kTinyRun;
  text.replace(text.find("out_features: 12"), 16, "out_features: 14");
  write_text(config(), text);
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err,
              HasSubstr("error: a run cannot be resumed with another model: model.1.out_features: "
                        "the run has 12, the configuration given 14"));
}

TEST_F(ResumeChanges, SaysWhichOtherValuesOfTheGivenFileAreNotUsed) {
  begin();
  std::string text = kTinyRun;
  text.replace(text.find("lr: 0.01"), 8, "lr: 0.02");
  text.replace(text.find("epochs: 3"), 9, "epochs: 5");
  write_text(config(), text);
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("warning: optimizer.lr: the run has 0.01, the configuration "
                                   "given 0.02; the run's is used\n"));
  EXPECT_THAT(ended.err, HasSubstr("warning: train.epochs: the run has 3, the configuration given "
                                   "5; the run's is used (change it with --set)"));
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 18);
}

// As a script does that starts again what was lost: what --set has made of the run is no
// difference.
TEST_F(ResumeChanges, GoesOnByTheCommandThatHasBegunIt) {
  const std::vector<std::string> sets{
      "--set", "model.1.out_features=14", "--set", "optimizer.lr=0.02", "--set", "train.steps=4"};
  ASSERT_EQ(train(sets).code, 0);
  std::vector<std::string> again{"--resume"};
  again.insert(again.end(), sets.begin(), sets.end());
  const Ended ended = train(again);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, Not(HasSubstr("warning")));
}

// Someone edited the run folder's config.yaml.
TEST_F(ResumeChanges, RefusesAConfigurationThatWasEdited) {
  begin();
  std::string text = read_text(run_dir() + "/config.yaml");
  text.replace(text.find("out_features: 12"), 16, "out_features: 14");
  const size_t in = text.find("in_features: 12");
  text.replace(in, 15, "in_features: 14");
  write_text(run_dir() + "/config.yaml", text);
  const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir()});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("config.yaml, model.1.out_features = 14: a resumed run keeps "
                                   "model.1.out_features = 12; only these may change: "));
}

// A key that was misspelt is told at its line, with what was meant.
TEST_F(ResumeChanges, NamesAKeyThatWasMisspeltInAnEditedConfiguration) {
  begin();
  const std::string path = run_dir() + "/config.yaml", good = read_text(path);
  const auto refuses = [&](const std::string& text, const std::string& with, const std::string& key,
                           const std::string& meant) {
    std::string edited = good;
    edited.replace(edited.find(text), text.size(), with);
    write_text(path, edited);
    const auto before = edited.substr(0, edited.find(with) + with.find(':'));
    const auto line = 1 + std::ranges::count(before, '\n');
    const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir()});
    EXPECT_EQ(ended.code, 2) << key;
    EXPECT_THAT(ended.err, HasSubstr("error: " + path + ":" + std::to_string(line) + ":"));
    const std::string name = key.substr(key.rfind('.') + 1);
    EXPECT_THAT(ended.err, HasSubstr(": " + key + ": unknown key '" + name + "'; did you mean '" +
                                     meant + "'?"));
  };
  refuses("  epochs: ", "  epoch: ", "train.epoch", "epochs");  // renamed
  refuses("  lr: ", "  lrr: ", "optimizer.lrr", "lr");
  refuses("  lr: ", "  weight_decy: 0\n  lr: ", "optimizer.weight_decy", "weight_decay");  // added
  refuses("  type: glyphs", "  limt: 50\n  type: glyphs", "data.limt", "limit");
  refuses("    every: ", "    evry: 3\n    every: ", "train.checkpoint.evry", "every");
  write_text(path, good);
  std::string known = good;  // a key that there is, and that the run has not
  known.replace(known.find("  type: glyphs"), 0, "  limit: 50\n");
  write_text(path, known);
  EXPECT_THAT(run_lacuna({"train", "--resume", "--run-dir", run_dir()}).err,
              HasSubstr("config.yaml, data.limit = 50: a resumed run keeps data.limit = nothing"));
}

TEST_F(ResumeChanges, RefusesWhenThereIsNothingToResume) {
  const Ended missing = train({"--resume"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err, "error: there is nothing to resume: the run folder '" + run_dir() +
                             "' does not exist; start the run without --resume\n");
  const Ended nowhere = run_lacuna({"train", "--resume"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(
      nowhere.err,
      HasSubstr("--resume needs the run's folder (--run-dir) or its CONFIG file: lacuna "
                "train --resume --run-dir DIR, where DIR is the folder of the run to continue"));
  EXPECT_THAT(listing(folder_.path()), Not(HasSubstr("run")));
}

TEST_F(ResumeChanges, RefusesAFolderInWhichAnotherProcessTrains) {
  begin();
  const RunFolder other = RunFolder::open(run_dir());
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("another process is training in the run folder '" + run_dir() +
                                   "'; wait until it ends, or stop it"));
}

}  // namespace
}  // namespace lacuna::resume_changes_test
