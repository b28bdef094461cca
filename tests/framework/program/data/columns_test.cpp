// A table whose columns are in another order than in training is never read by position: every
// command that uses a trained model refuses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"

namespace lacuna::columns_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The rows of a table of three columns, these in another order.
std::string permuted(const std::string& table, const std::vector<size_t>& order) {
  std::istringstream lines(table);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    for (size_t i = 0; i < order.size(); ++i) all += (i == 0 ? "" : ",") + row[order[i]];
    all += "\n";
  }
  return all;
}

constexpr const char* kMoved = "the columns are in another order than in training";

class Columns : public Use {
 protected:
  void SetUp() override {
    train_table();
    write_text(folder_ / "moved.csv", permuted(Table(1).with_labels, {1, 0, 2}));
    write_text(folder_ / "moved_test.csv", permuted(Table(2).with_labels, {1, 0, 2}));
  }
  static void refuses(const Ended& ended, const std::string& words = kMoved) {
    EXPECT_TRUE(ended.code == 1 || ended.code == 2) << ended.code << ended.err;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("error: "), HasSubstr(words)));
  }
  Ended evaluate(const std::vector<std::string>& assignments = {}) const {
    std::vector<std::string> arguments{"eval", run_dir()};
    for (const std::string& text : assignments) arguments.insert(arguments.end(), {"--set", text});
    return run_lacuna(arguments);
  }
  // Settings of a new run on the moved table.
  std::vector<std::string> on_moved(std::vector<std::string> more) const {
    for (const char* setting : {"data.train=moved.csv", "data.test=moved_test.csv"}) {
      more.insert(more.end(), {"--set", setting});
    }
    return more;
  }
  Ended train_here(const std::vector<std::string>& more, const std::string& name) const {
    return train(more, name, {.folder = folder_.path()});
  }
};

TEST_F(Columns, AreNotReadByPositionByEval) {
  const std::string moved = folder_ / "moved.csv", test = folder_ / "moved_test.csv";
  refuses(evaluate({"data.train=" + moved, "data.test=" + test}), moved + ": " + kMoved);
  refuses(evaluate({"data.test=" + test}), "expected the columns of");
  std::filesystem::rename(folder_ / "train.csv", folder_ / "gone.csv");
  const Ended alone = evaluate({"data.test=" + test});
  refuses(alone, "expected the columns that the model was trained on");
  EXPECT_THAT(alone.err, Not(HasSubstr("set by")));       // train.csv is not what is wrong
  std::filesystem::rename(moved, folder_ / "train.csv");  // the same path, other columns
  std::filesystem::rename(test, folder_ / "test.csv");
  refuses(evaluate());
}

TEST_F(Columns, AreNotReadByPositionByResume) {
  const std::vector<std::string> arguments{"train",    "--resume", "--run-dir",     run_dir(),
                                           "--change", "--set",    "train.epochs=9"};
  std::filesystem::rename(folder_ / "moved.csv", folder_ / "train.csv");
  std::filesystem::rename(folder_ / "moved_test.csv", folder_ / "test.csv");
  refuses(run_lacuna(arguments));
}

TEST_F(Columns, AreNotReadByPositionByNewRunsOfLoadedWeights) {
  refuses(train_here(on_moved({"--init-from", run_dir()}), "started"), "--init-from: the loaded");
  refuses(train_here(on_moved({"--set",
                               "model={layers: [{type: linear, out_features: 8}, relu, "
                               "{type: linear, out_features: 3}], init_from: {path: run, "
                               "rename: [{from: none, to: none}]}}"}),
                     "renamed"));
  write_text(folder_ / "prune.yaml",
             "sparsity: {algorithm: magnitude, sparsity: 0.5}\n"
             "data: {type: csv, train: moved.csv, test: moved_test.csv}\n");
  refuses(run_lacuna({"prune", run_dir(), folder_ / "prune.yaml", "--run-dir", run_dir("pruned")}));
}

TEST_F(Columns, OfATeacherAreThoseOfTheData) {
  refuses(train_here(on_moved({"--set", "loss={type: distillation, teacher: run}"}), "student"),
          "loss.teacher: the teacher was trained on a table, and ");
}

TEST_F(Columns, OfATeacherAreOnTheScaleOfTheData) {
  const std::vector<std::string> all = {"--set", "loss={type: distillation, teacher: run}", "--set",
                                        "data.normalize={mean: 1000, std: 7}"};
  const Ended other = train_here(all, "scaled");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, testing::HasSubstr("the teacher was trained on inputs normalized by"));
  EXPECT_THAT(other.err, testing::HasSubstr("here they are by mean 1000 and std 7"));
}

// Without the layer that reads them, only the user knows whether the order matters. Other names at
// the same places give a warning.
TEST_F(Columns, MayBeOthersOfOtherFirstLayers) {
  const Ended skipped =
      train_here(on_moved({"--set",
                           "model={layers: [{type: linear, out_features: 8}, relu, {type: linear, "
                           "out_features: 3}], init_from: {path: run, skip: ['linear1.*']}}"}),
                 "skipped");
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  std::string renamed = Table(1).with_labels;
  renamed.replace(0, 1, "w");
  write_text(folder_ / "renamed.csv", renamed);
  const std::string setting =
      "data={type: csv, train: renamed.csv, validation: 5, normalize: standard}";
  const Ended started = train_here({"--set", setting, "--init-from", run_dir()}, "started");
  EXPECT_EQ(started.code, 0) << started.err;
  EXPECT_THAT(started.err, HasSubstr("warning: --init-from: the loaded weights come from a run on "
                                     "a table with other columns"));
  const Ended student =
      train_here({"--set", setting, "--set", "loss={type: distillation, teacher: run}"}, "student");
  EXPECT_EQ(student.code, 0) << student.err;
  EXPECT_THAT(student.err, HasSubstr("the teacher reads columns by position"));
  refuses(evaluate({"data.train=" + (folder_ / "renamed.csv"), "data.test=null"}),
          "the table has the columns 'w', but the model was trained on 'x'");
}

// A label that is known by its name may stand anywhere; known by its place, it is another column.
TEST_F(Columns, OfALabelMayStandAnywhereByItsName) {
  ASSERT_EQ(train({"--set", "data.label_column=label"}, "named").code, 0);
  const auto of_test = [&](const std::string& run, const std::string& file) {
    return run_lacuna({"eval", run_dir(run), "--set", "data.test=" + (folder_ / file), "--set",
                       "data.train=" + (folder_ / file)});
  };
  const Ended as_it_was = of_test("named", "test.csv");
  EXPECT_EQ(as_it_was.code, 0) << as_it_was.err;
  for (const std::vector<size_t>& order : std::vector<std::vector<size_t>>{{2, 0, 1}, {0, 2, 1}}) {
    write_text(folder_ / "label.csv", permuted(Table(2).with_labels, order));
    EXPECT_EQ(of_test("named", "label.csv").out, as_it_was.out);
    EXPECT_NE(of_test("run", "label.csv").code, 0);
  }
}

}  // namespace
}  // namespace lacuna::columns_test
