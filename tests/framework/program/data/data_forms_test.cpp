// Data in the forms that people have it in, through all commands: trained on, evaluated with and
// without the training files, predicted from, and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"
#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna::data_forms_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class DataForms : public Use {
 protected:
  // Trains in the run's folder.
  void train_on(const std::string& data, const std::string& model) {
    write_text(config(), "data: " + data + "\nmodel: " + model +
                             "\noptimizer: {type: adam, lr: 0.02}\n"
                             "train: {epochs: 30, batch_size: 16, threads: 1}\n");
    const Ended trained = train({}, "run", {.folder = folder_.path()});
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_GT(summary(run_dir()).required<double>("test_accuracy"), 0.9);
  }
  std::string evaluated(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"eval", run_dir(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_lacuna(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  }
  Ended predict(const std::string& file) const {
    return run_lacuna({"predict", run_dir(), folder_ / file, "--out", folder_ / "out.csv"});
  }
  // Half of a run, and the rest of it, is the run.
  void expect_resumes() const {
    ASSERT_EQ(train({"--set", "train.epochs=15"}, "half", {.folder = folder_.path()}).code, 0);
    const Ended rest =
        run_lacuna({"train", "--resume", "--run-dir", run_dir("half"), "--set", "train.epochs=30"},
                   {.folder = folder_.path()});
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(summary(run_dir("half")).at("test_loss").text(),
              summary(run_dir()).at("test_loss").text());
  }
};

// Colours, dates, and gaps: the class depends on all three.
std::string houses(int first, int count) {
  std::string rows = "id,colour,built,rooms,kind\n";
  for (int i = first; i < first + count; ++i) {
    const bool is_red = i % 3 == 0, is_new = i % 5 < 2;
    rows += "n" + std::to_string(i) +
            (is_red       ? ",red,"
             : i % 3 == 1 ? ",blue,"
                          : ",green,") +
            (is_new ? "2020-01-0" : "1980-01-0") + std::to_string(1 + i % 7) + "," +
            (i % 4 == 0 ? "NA" : std::to_string(i % 9)) + "," +
            (is_red == is_new ? "large" : "small") + "\n";
  }
  return rows;
}

TEST_F(DataForms, ATableOfTextDatesAndGaps) {
  write_text(folder_ / "train.csv", houses(0, 200));
  write_text(folder_ / "test.csv", houses(300, 60));
  train_on(
      "{type: csv, train: train.csv, test: test.csv, validation: 0.1, drop_columns: [id], "
      "categories: [colour], dates: [built], missing: median, normalize: standard}",
      "[{type: linear, out_features: 16}, relu, {type: linear, out_features: 2}]");
  expect_resumes();
  // By name, in another order and without the column that is left out.
  write_text(folder_ / "new.csv",
             "rooms,built,colour\n3,2020-01-05,red\n,1980-01-05,blue\n2,1980-01-02,red\n");
  const Ended predicted = predict("new.csv");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("columns are in a different order than in training"));
  EXPECT_THAT(read_text(folder_ / "out.csv"),
              testing::MatchesRegex("class,p_large,p_small\nlarge,.*\nlarge,.*\nsmall,.*\n"));
  EXPECT_THAT(predict("test.csv").out, HasSubstr("by the column 'kind'"));
  write_text(folder_ / "new.csv", "rooms,built,colour\n3,2020-01-05,pink\n,1980-01-05,blue\n");
  EXPECT_THAT(predict("new.csv").err,
              HasSubstr("column 'colour': 'pink' (1): not among the categories of the training"));
  const auto test_loss = [&] {
    const Config splits = parse_yaml(evaluated({"--set", "data.validation=0"}), "out").at("splits");
    return splits.items()[0].at("loss").text();
  };
  const std::string with_training = test_loss();
  EXPECT_EQ(with_training, summary(run_dir()).at("test_loss").text());
  std::filesystem::remove(folder_ / "train.csv");
  EXPECT_EQ(test_loss(), with_training);
}

TEST_F(DataForms, CategoriesOfOtherDataAreRefused) {
  write_text(folder_ / "train.csv", houses(0, 100));
  train_on(
      "{type: csv, train: train.csv, test: 0.2, drop_columns: [id], categories: [colour], dates: "
      "[built], missing: mean, normalize: standard}",
      "[{type: linear, out_features: 16}, relu, {type: linear, out_features: 2}]");
  std::string other = houses(0, 100);
  for (size_t at; (at = other.find("green")) != std::string::npos;) other.replace(at, 5, "brown");
  write_text(folder_ / "train.csv", other);
  const Ended refused = run_lacuna({"eval", run_dir(), "--data-changed"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("the column 'colour' has other categories than in training"));
  const Ended resumed = run_lacuna(
      {"train", "--resume", "--run-dir", run_dir(), "--change", "--set", "train.epochs=40"},
      {.folder = folder_.path()});
  EXPECT_NE(resumed.code, 0);
  EXPECT_THAT(resumed.err, HasSubstr("the column 'colour' has other categories than in training"));
}

TEST_F(DataForms, NewsWithoutAHeader) {
  std::string news;
  for (int i = 0; i < 120; ++i) {
    news += i % 2 == 0 ? "\"1\",\"t\",\"peace talks, in the " + std::to_string(i) + "th week\"\n"
                       : "\"2\",\"t\",\"they won the \"\"cup\"\" of " + std::to_string(i) + "\"\n";
  }
  write_text(folder_ / "train.csv", news);
  train_on(
      "{type: labelled_text, train: train.csv, test: 0.2, header: false, text_column: 2, "
      "label_column: 0, class_names: {1: World, 2: Sports}, max_length: 12, cls: true}",
      "{type: bert, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, "
      "intermediate_size: 32, max_position_embeddings: 12, hidden_dropout_prob: 0.0, "
      "attention_probs_dropout_prob: 0.0}");
  write_text(folder_ / "new.csv", "1,t,\"peace talks, in the week\"\n2,t,they won the cup\n");
  const Ended predicted = predict("new.csv");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("accuracy 100.00 % of 2 examples, by its labels"));
  EXPECT_THAT(read_text(folder_ / "out.csv"), StartsWith("class,p_World,p_Sports\nWorld,"));
  write_text(folder_ / "new.csv", "\"peace talks, in\"\nthey won\n");
  EXPECT_THAT(predict("new.csv").out, StartsWith("2 predictions"));
  const Ended test = run_lacuna({"eval", run_dir(), "--set", "data.test=" + (folder_ / "train.csv"),
                                 "--set", "data.validation=0"});
  EXPECT_EQ(test.code, 0) << test.err;
}

TEST_F(DataForms, ArraysOfNumpy) {
  std::vector<float> inputs;
  std::vector<int64_t> labels;
  for (int i = 0; i < 120; ++i) {
    inputs.insert(inputs.end(), {static_cast<float>(i % 3), static_cast<float>(i % 7) * 0.1f});
    labels.push_back(i % 3);
  }
  const Tensor x = Tensor::from({120, 2}, inputs);
  write_npz(folder_ / "d.npz", {{"train_inputs", x},
                                {"train_targets", labels},
                                {"test_inputs", x},
                                {"test_targets", labels}});
  train_on(
      "{type: npz, path: d.npz, test_inputs: test_inputs, test_targets: test_targets, normalize: "
      "standard}",
      "[{type: linear, out_features: 16}, relu, {type: linear, out_features: 3}]");
  expect_resumes();
  ASSERT_EQ(predict("d.npz").code, 0);
  EXPECT_THAT(read_text(folder_ / "out.csv"), StartsWith("class,p0,p1,p2\n0,"));
  const std::string before = evaluated();
  write_npz(folder_ / "d.npz", {{"test_inputs", x}, {"test_targets", labels}});
  EXPECT_EQ(evaluated(), before);  // the training arrays are not needed
}

}  // namespace
}  // namespace lacuna::data_forms_test
