// Runs on classes of unequal size: what they measure stays with them.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::class_balance_runs_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// 24 examples of class 0, 6 of class 1; half as many in the test split.
class ClassBalanceRuns : public RunFixture {
 protected:
  void SetUp() override {
    std::string train = "x,y,label\n", test = train;
    for (int i = 0; i < 30; ++i) {
      const std::string line = std::to_string(i * 7 % 11) + "," + std::to_string(i * 5 % 13) + "," +
                               (i % 5 == 4 ? "1" : "0") + "\n";
      train += line;
      if (i % 2 == 0) test += line;
    }
    write_text(config(), "data: {type: csv, train: " + folder_.write("train.csv", train) +
                             ", test: " + folder_.write("test.csv", test) +
                             "}\n"
                             "model: [{type: linear, out_features: 2}]\n"
                             "optimizer: {type: sgd, lr: 0.01}\n"
                             "train: {steps: 6, batch_size: 8, threads: 1}\n");
  }
  static constexpr const char* kBalanced = "loss={class_weights: balanced}";
};

TEST_F(ClassBalanceRuns, KeepTheWeightsThatTheyMeasured) {
  ASSERT_EQ(train({"--set", kBalanced}).code, 0);
  EXPECT_THAT(
      load_yaml(run_dir() + "/config.yaml").peek("loss.class_weights").as<std::vector<double>>(),
      ElementsAre(30.0 / 48.0, 30.0 / 12.0));
  // The training examples are not needed, and not counted again.
  std::filesystem::remove(folder_ / "train.csv");
  const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(parse_yaml(evaluated.out, "out").at("splits").items()[0].at("loss").text(),
            summary(run_dir()).at("test_loss").text());
  const Ended refused = run_lacuna({"eval", run_dir(), "--set", kBalanced});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("only training measures `balanced`; leave it out to use the run's"));
}

TEST_F(ClassBalanceRuns, GoOnByTheConfigurationThatBeganThem) {
  write_text(config(), read_text(config()) + "loss: {class_weights: balanced}\n");
  ASSERT_EQ(train().code, 0);
  const Ended resumed = train({"--resume", "--set", "train.steps=8"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, Not(HasSubstr("class_weights")));
}

TEST_F(ClassBalanceRuns, WeighOrDrawButNotBoth) {
  const Ended both = train({"--set", kBalanced, "--set", "data.sampling=balanced"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("loss.class_weights: data.sampling already draws classes equally "
                                  "often; leave one of the two out"));
  const Ended positive = train({"--set", "loss={type: binary_cross_entropy, pos_weight: balanced}",
                                "--set", "data.sampling=balanced"});
  EXPECT_EQ(positive.code, 2);
  EXPECT_THAT(positive.err, HasSubstr("loss.pos_weight: data.sampling already draws classes"));
  EXPECT_EQ(
      train({"--set", "loss={class_weights: [1, 4]}", "--set", "data.sampling=balanced"}).code, 0);
}

}  // namespace
}  // namespace lacuna::class_balance_runs_test
