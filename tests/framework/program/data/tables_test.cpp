// Tables as people have them: columns in any order, labels that are names, targets in their own
// unit, files beside the configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"

namespace lacuna::tables_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The same rows with the columns in another order, and one more.
std::string shuffled(const std::string& table, bool with_label) {
  std::istringstream lines(table);
  std::string out, x, y, label;
  while (std::getline(lines, x, ',') && std::getline(lines, y, ',') && std::getline(lines, label)) {
    out += "7," + y + "," + x + (with_label ? "," + label : "") + "\n";
  }
  out.replace(0, 1, "id");
  return out;
}

class Tables : public Use {
 protected:
  Ended train_names() {
    std::string names = Table(1).with_labels;
    const std::vector<std::string> of = {"iris, the first", "setosa", "\xC3\xBC"};
    std::string renamed;
    std::istringstream lines(names);
    for (std::string line; std::getline(lines, line);) {
      const size_t comma = line.rfind(',');
      const std::string label = line.substr(comma + 1);
      const bool is_header = label == "label";
      renamed += line.substr(0, comma + 1) +
                 (is_header ? label : "\"" + of[static_cast<size_t>(label[0] - '0')] + "\"") + "\n";
    }
    write_text(folder_ / "train.csv", renamed);
    write_text(config(), "data: {type: csv, train: " + (folder_ / "train.csv") +
                             ", test: " + (folder_ / "train.csv") +
                             ", normalize: standard}\n"
                             "model: [{type: linear, out_features: 8}, relu, "
                             "{type: linear, out_features: 3}]\n"
                             "optimizer: {type: adam, lr: 0.05}\n"
                             "train: {epochs: 8, batch_size: 10, threads: 1}\n");
    return train();
  }
};

TEST_F(Tables, AreMatchedByTheNamesOfTheirColumns) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  ASSERT_EQ(predict("in.csv", "plain.csv").code, 0);
  write_text(folder_ / "other.csv", shuffled(Table(2).with_labels, false));
  const Ended ended = predict("other.csv", "other_out.csv");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(read_text(folder_ / "other_out.csv"), read_text(folder_ / "plain.csv"));
  EXPECT_THAT(ended.err, HasSubstr("not trained on are ignored: id"));
  EXPECT_THAT(ended.err,
              HasSubstr("in a different order than in training, and are matched by name: x"));
  write_text(folder_ / "one.csv", "y,x\n1,500\n");
  const Ended one = run_lacuna({"predict", run_dir(), "-", "--out", folder_ / "one_out.csv"},
                               {.standard_in = folder_ / "one.csv"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.err, HasSubstr("warning: standard input: columns are in a different order"));
  EXPECT_EQ(one.out, "1 prediction is in " + (folder_ / "one_out.csv") + "\n");
  write_text(folder_ / "rows.csv", "500,-7\n510,-6.9\n");
  const Ended headless = predict("rows.csv", "rows_out.csv");
  EXPECT_EQ(headless.code, 1);
  EXPECT_THAT(headless.err, HasSubstr("are missing: x, y; it has columns that the model does not "
                                      "know: 500, -7; the first line must name the columns"));
  write_text(folder_ / "twice.csv", "x,x,y\n1,2,3\n");
  EXPECT_THAT(predict("twice.csv").err, HasSubstr("columns 1 and 2 have the same name, 'x'"));
}

TEST_F(Tables, WithLabelsTellTheAccuracy) {
  train_table();
  write_text(folder_ / "in.csv", shuffled(Table(2).with_labels, true));
  const Ended ended = predict("in.csv");
  ASSERT_EQ(ended.code, 0) << ended.err;
  char line[100];
  std::snprintf(line, sizeof line, "accuracy %.2f %% of 60 examples, by the column 'label'\n",
                100.0 * summary(run_dir()).required<double>("test_accuracy"));
  EXPECT_THAT(ended.out, HasSubstr(line));
}

TEST_F(Tables, WithLabelsOutsideTheClassesAreRefused) {
  train_table();
  for (const char* label : {"3", "1000000"}) {
    write_text(folder_ / "in.csv", std::string("x,y,label\n500,-7,1\n500,-7,") + label + "\n");
    const Ended ended = predict("in.csv");
    EXPECT_EQ(ended.code, 1) << label;
    EXPECT_THAT(ended.err, HasSubstr("in.csv:3:8: field 'label': expected a label, which is an "
                                     "integer from 0 to 2, found '" +
                                     std::string(label) + "'"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.csv"));
  }
}

TEST_F(Tables, WithIgnoredLabelsTellTheAccuracyOfTheOthers) {
  train_table("standard", "loss: {ignore_index: 2}\n");
  write_text(folder_ / "in.csv", Table(2).with_labels);
  const Ended ended = predict("in.csv");
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::istringstream lines(Table(2).with_labels);
  int counted = -1;  // without the header
  for (std::string line; std::getline(lines, line);) counted += line.ends_with(",2") ? 0 : 1;
  char line[100];
  std::snprintf(line, sizeof line, "accuracy %.2f %% of %d examples, by the column 'label'\n",
                100.0 * summary(run_dir()).required<double>("test_accuracy"), counted);
  EXPECT_THAT(ended.out, HasSubstr(line));
}

TEST_F(Tables, ComeThroughTheStandardInput) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  ASSERT_EQ(predict("in.csv", "plain.csv").code, 0);
  const Ended ended = run_lacuna({"predict", run_dir(), "-", "--out", folder_ / "out.csv"},
                                 {.standard_in = folder_ / "in.csv"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(read_text(folder_ / "out.csv"), read_text(folder_ / "plain.csv"));
}

TEST_F(Tables, HaveLabelsThatAreNames) {
  const Ended trained = train_names();
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(summary(run_dir()).required<double>("test_accuracy"), 0.8);
  write_text(folder_ / "in.csv", Table(1).without_labels);
  ASSERT_EQ(predict("in.csv").code, 0);
  const std::string out = read_text(folder_ / "out.csv");
  EXPECT_THAT(out, testing::StartsWith("class,\"p_iris, the first\",p_setosa,p_\xC3\xBC\n"));
  EXPECT_THAT(out, HasSubstr("\n\"iris, the first\",0."));
  EXPECT_THAT(out, HasSubstr("\nsetosa,0"));
  EXPECT_THAT(out, HasSubstr("\n\xC3\xBC,0"));
  write_text(folder_ / "test.csv", "x,y,label\n500,-7,setoza\n");
  const Ended other =
      run_lacuna({"eval", run_dir(), "--set", "data.test=" + (folder_ / "test.csv")});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err,
              HasSubstr("test.csv:2:8: field 'label': expected one of the classes of the "
                        "training data (did you mean 'setosa'?), found 'setoza'"));
}

TEST_F(Tables, OfRegressionAreToldInTheirOwnUnit) {
  std::string table = "x,price\n", bare = "x\n";
  for (int i = 0; i < 50; ++i) {
    const double x = i / 50.0;
    table += number(x) + "," + number(1e6 + 2e5 * x) + "\n";
    bare += number(x) + "\n";
  }
  write_text(folder_ / "train.csv", table);
  write_text(folder_ / "in.csv", bare);
  write_text(config(), "data: {type: csv, task: regression, normalize_targets: true, train: " +
                           (folder_ / "train.csv") + ", test: " + (folder_ / "train.csv") +
                           "}\nmodel: [{type: linear, out_features: 1}]\n"
                           "optimizer: {type: adam, lr: 0.1}\n"
                           "train: {epochs: 60, batch_size: 10, threads: 1}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Config results = summary(run_dir());
  EXPECT_GT(results.required<double>("test_r2"), 0.99);
  const size_t last = trained.out.find("last ");
  const std::string line = trained.out.substr(last, trained.out.find('\n', last) - last);
  EXPECT_THAT(line, testing::MatchesRegex("last +test R² [^ ]+, MAE [^ ]+, RMSE [^ ]+, loss .*"));
  EXPECT_LT(results.required<double>("test_loss"), 0.01);
  ASSERT_EQ(predict("in.csv").code, 0);
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  double squares = 0.0, distances = 0.0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double off = rows[i][0] - (1e6 + 2e5 * static_cast<double>(i) / 50.0);
    squares += off * off / 50.0;
    distances += std::abs(off) / 50.0;
  }
  // float32 holds these targets to 0.06, and predictions are written to nine digits.
  EXPECT_NEAR(results.required<double>("test_rmse"), std::sqrt(squares), 0.5);
  EXPECT_NEAR(results.required<double>("test_mae"), distances, 0.5);
  const Config split =
      parse_yaml(run_lacuna({"eval", run_dir(), "--json"}).out, "out").at("splits").items()[0];
  EXPECT_EQ(split.at("rmse").text(), results.at("test_rmse").text());
  EXPECT_EQ(split.at("r2").text(), results.at("test_r2").text());
  EXPECT_THAT(predict("train.csv").out, HasSubstr("by the column 'price'"));
}

TEST_F(Tables, WhoseNumbersAreNoClassesAskForRegression) {
  write_text(folder_ / "prices.csv", "area,price\n30,95000\n40,120000\n50,151000\n");
  write_text(config(), "data: {type: csv, train: " + (folder_ / "prices.csv") +
                           "}\nmodel: [{type: linear}]\noptimizer: {type: adam}\n"
                           "train: {steps: 2, batch_size: 3, threads: 1}\n");
  const Ended ended = train();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("the labels of 3 training examples go up to 151000: "
                                   "if they are numbers to predict, set task: regression"));
  EXPECT_EQ(train({"--set", "data.task=regression"}).code, 0);
}

TEST_F(Tables, AreLookedForBesideTheConfiguration) {
  write_text(folder_ / "train.csv", Table(1).with_labels);
  write_text(config(),
             "data: {type: csv, train: train.csv}\n"
             "model: [{type: linear, out_features: 3}]\n"
             "optimizer: {type: adam}\ntrain: {steps: 2, batch_size: 10, threads: 1}\n");
  std::filesystem::create_directory(folder_ / "elsewhere");
  const Ended ended = train({}, "run", {.folder = folder_ / "elsewhere"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("'train.csv' is not in the current folder; taken from that of " +
                                   config() + "\n"));
  EXPECT_EQ(load_yaml(run_dir() + "/config.yaml").at("data").at("train").text(),
            folder_ / "train.csv");
  const Ended set =
      train({"--set", "data.train=train.csv"}, "new", {.folder = folder_ / "elsewhere"});
  EXPECT_EQ(set.code, 1);
  EXPECT_THAT(set.err, HasSubstr("train.csv: cannot be opened"));
}

// Of the run folder: what a checkpoint says is what a run goes on with.
TEST_F(Tables, AConfigurationThatWasEditedIsRefused) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:6"}).code, -9);
  const std::string path = run_dir() + "/config.yaml", before = read_text(path);
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = before;
    text.replace(text.find(from), from.size(), to);
    write_text(path, text);
    return train({"--resume"});
  };
  const Ended changed = edited("lr: 0.01", "lr: 0.02");
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("config.yaml, optimizer.lr = 0.02: a resumed run keeps "
                                     "optimizer.lr = 0.01; only these may change: train.epochs, "));
  const Ended added = edited("lr: 0.01", "lr: 0.01\n  clip_norm: 3");
  EXPECT_EQ(added.code, 2);
  EXPECT_THAT(added.err, HasSubstr("a resumed run keeps optimizer.clip_norm = nothing"));
  EXPECT_EQ(edited("epochs: 3", "epochs: 2").code, 0);
  EXPECT_EQ(summary(run_dir()).required<int>("steps"), 12);
  const std::string told = read_text(run_dir() + "/summary.json");
  EXPECT_EQ(train({"--resume", "--threads", "2"}).code, 0);
  EXPECT_EQ(read_text(run_dir() + "/summary.json"), told);
}

}  // namespace
}  // namespace lacuna::tables_test
