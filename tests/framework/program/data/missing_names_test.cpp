// Runs whose classes and categories are words for missing values, as earlier versions took them
// from tables without quotes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "framework/program/runs.h"

namespace lacuna::missing_names_test {
namespace {

using testing::HasSubstr;

class MissingNames : public RunFixture {
 protected:
  // Of two categories and two classes, the second ones as they are given here.
  static std::string table(int rows, const std::string& category, const std::string& name) {
    std::string text = "x,colour,label\n";
    for (int i = 0; i < rows; ++i) {
      text += std::to_string(i % 7) + "," + (i % 3 == 0 ? category : "red") + "," +
              (i % 2 == 0 ? name : "cat") + "\n";
    }
    return text;
  }
  void write_tables(const std::string& category, const std::string& name) const {
    write_text(folder_ / "train.csv", table(40, category, name));
    write_text(folder_ / "test.csv", table(20, category, name));
  }
  void write_config(const std::string& keys) const {
    write_text(config(), "data: {type: csv, train: " + (folder_ / "train.csv") +
                             ", categories: [colour], " + keys +
                             "}\nmodel: [{type: linear, out_features: 2}]\n"
                             "optimizer: {type: sgd, lr: 0.1}\nsparsity: null\n"
                             "train: {steps: 4, batch_size: 8, threads: 1}\n");
  }
  std::string with_test() const { return "test: " + (folder_ / "test.csv"); }
};

// As in runs of earlier versions: everything takes the words as names, with and without a test
// file, filled-in inputs and held-out examples.
TEST_F(MissingNames, OfRunsOfEarlierVersionsStayNames) {
  for (const std::string& keys :
       {with_test(), with_test() + ", missing: mean", std::string("validation: 0.25"),
        std::string("test: 0.2, missing: median")}) {
    SCOPED_TRACE(keys);
    write_tables("NA", "None");
    write_config(keys + ", missing_names: false");
    const Ended trained = train();
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    const Ended predicted =
        run_lacuna({"predict", run_dir(), folder_ / "test.csv", "--out", folder_ / "out.csv"});
    EXPECT_EQ(predicted.code, 0) << predicted.err;
    EXPECT_THAT(predicted.out, HasSubstr("of 20 examples, by the column 'label'"));
    const Ended resumed =
        run_lacuna({"train", "--resume", "--run-dir", run_dir(), "--set", "train.steps=6"});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    std::filesystem::remove_all(run_dir());
  }
}

TEST_F(MissingNames, OfNewRunsNeedQuotes) {
  write_tables("blue", "None");
  write_config(with_test());
  const Ended refused = train();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("as a name, it stands between quotes: \"None\""));
  write_tables("\"NA\"", "\"None\"");
  const Ended trained = train();
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(read_text(run_dir() + "/config.yaml"), HasSubstr("missing_names: true"));
}

}  // namespace
}  // namespace lacuna::missing_names_test
