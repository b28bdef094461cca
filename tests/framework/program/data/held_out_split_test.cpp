// The validation split that a run has held out is the run's: what would move it is refused by eval
// and told by prune.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"

namespace lacuna::held_out_split_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class HeldOutSplit : public Use {
 protected:
  void begin(const std::string& yaml) {
    write_text(config(), yaml);
    const Ended trained = train({}, "run", {.folder = folder_.path()});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  Ended evaluate(const std::vector<std::string>& assignments) const {
    std::vector<std::string> arguments{"eval", run_dir(), "--json"};
    for (const std::string& text : assignments) arguments.insert(arguments.end(), {"--set", text});
    return run_lacuna(arguments);
  }
  void refuses(const std::string& assignment, const std::string& value) const {
    const Ended ended = evaluate({assignment});
    EXPECT_EQ(ended.code, 2) << assignment;
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_THAT(
        ended.err,
        HasSubstr("error: --set " + assignment + ": the run held out its validation split with " +
                  key + " = " + value + "; another value would put training examples into it"));
    EXPECT_THAT(ended.out, IsEmpty());
  }
  // The splits that are told, as "validation test".
  static std::string names(const Ended& ended) {
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::string names;
    for (const Config& split : parse_yaml(ended.out, "out").at("splits").items()) {
      names += (names.empty() ? "" : " ") + split.at("split").text();
    }
    return names;
  }
};

TEST_F(HeldOutSplit, IsNotMovedByEval) {
  begin(kTinyRun);
  const std::string before = evaluate({}).out;
  refuses("train.seed=7", "0");
  refuses("data.validation=30", "10");
  refuses("data.validation=0.5", "10");
  refuses("data.limit=60", "nothing");
  refuses("data.train_size=90", "100");
  // What says the same, or leaves the split out, or is of other examples alone, is good.
  for (const char* same : {"train.seed=0", "data.validation=10", "train.eval_batch_size=1000"}) {
    EXPECT_EQ(evaluate({same}).out, before) << same;
  }
  EXPECT_EQ(names(evaluate({"data.validation=0"})), "test");
  EXPECT_EQ(names(evaluate({"data.validation=0", "train.seed=7", "data.limit=50"})), "test");
  EXPECT_EQ(names(evaluate({"data.test_size=20"})), "validation test");
}

TEST_F(HeldOutSplit, MayBeLeftOutNextToATestSplitThatIsHeldOut) {
  write_text(folder_ / "rows.csv", table_of_numbers(60));
  begin("data: {type: csv, train: " + (folder_ / "rows.csv") +
        ", validation: 0.2, test: 0.1}\nmodel: [{type: linear, out_features: 2}]\n"
        "optimizer: {type: sgd, lr: 0.1}\ntrain: {epochs: 1, batch_size: 10, threads: 1}\n");
  const Ended both = evaluate({}), one = evaluate({"data.validation=0"});
  EXPECT_EQ(names(both), "validation test");
  EXPECT_EQ(names(one), "test");
  const auto loss = [](const Ended& ended) {
    return parse_yaml(ended.out, "out").at("splits").items().back().at("loss").text();
  };
  EXPECT_EQ(loss(one), loss(both));
}

TEST_F(HeldOutSplit, IsNotMadeByEvalOfWhatWasTrainedOn) {
  std::string text = kTinyRun;
  text.replace(text.find(", validation: 10"), 16, "");
  begin(text);
  refuses("data.validation=10", "0.0");
  EXPECT_EQ(names(evaluate({"train.seed=7"})), "test");
}

TEST_F(HeldOutSplit, OfATextLiesBeforeItsTestSplit) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "to be or not to be, " + std::to_string(i) + "\n";
  write_text(folder_ / "train.txt", text);
  write_text(folder_ / "other.txt", text.substr(0, 500));
  begin(
      "data: {type: text, path: train.txt, validation: 0.1, test: 0.1, context: 8}\n"
      "model: [{type: token_embedding, features: 4}, {type: linear}]\n"
      "optimizer: {type: adam}\ntrain: {steps: 3, batch_size: 4, threads: 1}\n");
  EXPECT_EQ(names(evaluate({})), "validation test");
  refuses("data.test=0.2", "0.1");
  refuses("data.test=0", "0.1");
  refuses("data.validation=0.3", "0.1");
  EXPECT_EQ(names(evaluate({"train.seed=7"})), "validation test");  // draws nothing here
  const Ended other = evaluate({"data.test=" + (folder_ / "other.txt")});
  EXPECT_EQ(names(other), "test");
  EXPECT_THAT(other.err, HasSubstr("only data.test is evaluated"));
}

TEST_F(HeldOutSplit, OfOtherFilesIsAnother) {
  write_text(folder_ / "train.csv", Table(1).with_labels);
  write_text(folder_ / "more.csv", Table(2).with_labels + "500,-7,0\n");
  begin(
      "data: {type: csv, train: train.csv, validation: 10}\n"
      "model: [{type: linear, out_features: 3}]\noptimizer: {type: adam}\n"
      "train: {epochs: 1, batch_size: 10, threads: 1}\n");
  EXPECT_THAT(evaluate({}).err, IsEmpty());
  const Ended other = evaluate({"data.train=" + (folder_ / "more.csv")});
  EXPECT_EQ(other.code, 1);
  const std::string change =
      "the data has changed since the run was trained: training data of a different size (61, "
      "which was 60) (the validation split is a part of that data, and may contain training "
      "examples)";
  EXPECT_THAT(other.err, HasSubstr("error: " + change));
  const Ended accepted = run_lacuna(
      {"eval", run_dir(), "--data-changed", "--set", "data.train=" + (folder_ / "more.csv")});
  EXPECT_EQ(accepted.code, 0);
  EXPECT_THAT(accepted.err, HasSubstr("warning: " + change));
}

TEST_F(HeldOutSplit, IsToldByPruneToBeMoved) {
  begin(kTinyRun);
  const std::string prune_config = folder_ / "prune.yaml";
  const std::string section = "sparsity: {algorithm: magnitude, sparsity: 0.5}\n";
  const auto prune = [&](const std::string& text, const std::string& to) {
    write_text(prune_config, text);
    const Ended ended = run_lacuna({"prune", run_dir(), prune_config, "--run-dir", run_dir(to)});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(prune(section, "same"), Not(HasSubstr("validation split")));
  EXPECT_THAT(prune(section + "train: {seed: 3}\n", "moved"),
              AllOf(HasSubstr("warning: " + prune_config + ":2:15: train.seed: "),
                    HasSubstr("are in the validation split")));
}

}  // namespace
}  // namespace lacuna::held_out_split_test
