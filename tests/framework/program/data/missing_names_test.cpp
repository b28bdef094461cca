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
  Ended evaluate() const { return run_lacuna({"eval", run_dir(), "--json"}); }
  Ended resume() const {
    return run_lacuna({"train", "--resume", "--run-dir", run_dir(), "--set", "train.steps=6"});
  }
};

TEST_F(MissingNames, OfClassesAreStillEvaluated) {
  write_tables("blue", "\"None\"");
  write_config(with_test());
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ended before = evaluate();
  ASSERT_EQ(before.code, 0) << before.err;
  write_tables("blue", "None");
  const Ended after = evaluate();
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(after.out, before.out);
  EXPECT_THAT(after.err, HasSubstr("the splits in files of their own are evaluated"));
  const Ended predicted =
      run_lacuna({"predict", run_dir(), folder_ / "test.csv", "--out", folder_ / "out.csv"});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("of 20 examples, by the column 'label'"));
  // To go on, the training file must say that the word is a name.
  const Ended refused = resume();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("as a name, it stands between quotes: \"None\""));
  write_tables("blue", "\"None\"");
  const Ended resumed = resume();
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST_F(MissingNames, OfCategoriesAreStillEvaluated) {
  for (const std::string missing : {"error", "mean"}) {
    write_tables("\"NA\"", "dog");
    write_config(with_test() + ", missing: " + missing);
    const Ended trained = train();
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Ended before = evaluate();
    ASSERT_EQ(before.code, 0) << before.err;
    write_tables("NA", "dog");
    const Ended after = evaluate();
    EXPECT_EQ(after.code, 0) << missing << after.err;
    EXPECT_EQ(after.out, before.out) << missing;
    std::filesystem::remove_all(run_dir());
  }
}

TEST_F(MissingNames, OfHeldOutExamplesNeedQuotes) {
  write_tables("blue", "\"None\"");
  write_config("validation: 0.25");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  write_tables("blue", "None");
  const Ended refused = evaluate();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("as a name, it stands between quotes: \"None\""));
}

}  // namespace
}  // namespace lacuna::missing_names_test
