#include "lacuna/framework/report/differences.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lacuna/framework/io/yaml.h"

namespace lacuna::differences_test {
namespace {

using testing::ElementsAre;

RunData configured(const std::string& name, const std::string& config) {
  RunData run{.folder = name, .name = name, .label = name};
  run.config = parse_yaml(config, "config.yaml");
  return run;
}

std::string in_text(const std::vector<RunData>& runs) {
  std::string text;
  for (const Difference& difference : config_differences(runs)) {
    text += difference.key + ":";
    for (const std::string& value : difference.values) text += " " + value + ";";
    text += "\n";
  }
  return text;
}

TEST(ConfigDifferences, NamesKeysWithEachRunsValue) {
  const std::vector<RunData> runs = {
      configured("a", "{x: {y: [1, 2]}, z: same, run_dir: a, csr_up_to: {w: 0.5}}"),
      configured("b", "{x: {y: [1, 3]}, z: same, run_dir: b, more: true}")};
  const std::vector<Difference> differences = config_differences(runs);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "more");
  EXPECT_EQ(differences[0].values, (std::vector<std::string>{"", "true"}));
  EXPECT_EQ(differences[1].key, "x.y.1");
  EXPECT_EQ(differences[1].values, (std::vector<std::string>{"2", "3"}));
}

// Layers alone, and a map of them and of where the weights come from.
TEST(ConfigDifferences, SeeThroughTheFormOfAModel) {
  std::vector<RunData> runs = {configured("a", "{}"), configured("b", "{}")};
  runs[0].config = parse_yaml("model: [relu, {type: linear, out_features: 3}]", "a");
  runs[1].config = parse_yaml(
      "model: {layers: [relu, {type: linear, out_features: 3}], init_from: runs/a}", "b");
  const std::vector<Difference> differences = config_differences(runs);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].key, "model.init_from");
}

// A section that is null and one that is left out say the same.
TEST(ConfigDifferences, TakeNullForNothing) {
  const std::vector<RunData> runs{configured("a", "{sparsity: null, seed: 1}"),
                                  configured("b", "{sparsity: {algorithm: set}, seed: 2}"),
                                  configured("c", "{seed: 2}")};
  EXPECT_EQ(in_text(runs), "seed: 1; 2; 2;\nsparsity.algorithm: ; \"set\"; ;\n");
}

// Where data lies, what layers are called and what is logged changes nothing.
TEST(ConfigDifferences, LeaveOutPathsNamesAndWhatIsLogged) {
  EXPECT_EQ(in_text({configured("a",
                                "data: {type: mnist, dir: /disk/a/mnist}\n"
                                "model: [relu, {type: linear, name: fc1, out_features: 3}]\n"
                                "loss: cross_entropy\n"
                                "train: {log_every: 5, tensorboard: true, prefetch: 0}\n"
                                "run_dir: runs/a\n"),
                     configured("b",
                                "data: {type: mnist, dir: /data/mnist/}\n"
                                "model: [{type: relu}, {type: linear, name: head, out_features: 3}]"
                                "\nloss: {type: cross_entropy}\n"
                                "train: {log_every: 100}\n"
                                "run_dir: runs/b\n")}),
            "");
  EXPECT_EQ(in_text({configured("a", "data: {train: /disk/a/wine.csv}"),
                     configured("b", "data: {train: /disk/a/cars.csv}")}),
            "data.train: \"wine.csv\"; \"cars.csv\";\n");
}

// A default says the same written out or not, and what only some have, all as by default, follows
// from another difference.
TEST(ConfigDifferences, LeaveOutDefaults) {
  std::vector<RunData> runs = {
      configured("old", "optimizer: {type: adam, lr: 0.1}"),
      configured("new", "optimizer: {type: adam, lr: 0.1, beta1: 0.9}"),
      configured("other", "optimizer: {type: sgd, lr: 0.1, momentum: 0.0}")};
  EXPECT_EQ(in_text(runs),
            "optimizer.beta1: ; 0.9; ;\noptimizer.momentum: ; ; 0.0;\n"
            "optimizer.type: \"adam\"; \"adam\"; \"sgd\";\n");
  runs[0].full_config = runs[1].config;
  for (RunData& run : runs) run.defaults = {"optimizer.beta1", "optimizer.momentum"};
  EXPECT_EQ(in_text(runs), "optimizer.type: \"adam\"; \"adam\"; \"sgd\";\n");
  // One that somebody has chosen stands next to the others' defaults.
  runs[1].config.set_path("optimizer.beta1", Config(0.5));
  runs[1].defaults = {};
  runs[0].full_config = parse_yaml("optimizer: {type: adam, lr: 0.1, beta1: 0.9}", "old");
  EXPECT_EQ(in_text(runs),
            "optimizer.beta1: 0.9; 0.5; ;\n"
            "optimizer.type: \"adam\"; \"adam\"; \"sgd\";\n");
}

// The configuration has the last value alone.
TEST(ConfigDifferences, HaveWhatWasChangedOnTheWay) {
  std::vector<RunData> runs = {configured("a", "{optimizer: {lr: 0.1}, train: {seed: 1}}"),
                               configured("b", "{optimizer: {lr: 0.1}, train: {seed: 2}}"),
                               configured("c", "{optimizer: {lr: 0.1}, train: {seed: 3}}")};
  runs[1].changes = {
      {.step = 45, .key = "optimizer.lr", .before = Config(0.3), .after = Config(0.2)},
      {.step = 60, .key = "optimizer.lr", .before = Config(0.2), .after = Config(0.1)}};
  EXPECT_EQ(in_text(runs),
            "changed.optimizer.lr: ; \"0.3 until step 45, 0.2 until step 60\"; ;\n"
            "train.seed: 1; 2; 3;\n");
  EXPECT_THAT(
      seed_labels(runs),
      ElementsAre("as configured", "lr=0.3 until step 45, 0.2 until step 60", "as configured"));
}

// A mean over them would not be one over seeds.
TEST(SetApart, UnfinishedRunsRepeatedSeedsAndInt8) {
  std::vector<RunData> runs;
  for (int i = 0; i < 8; ++i) {
    const bool is_second = i == 1 || i == 7;
    runs.push_back(configured("run", is_second ? "{train: {seed: 1}}" : "{train: {seed: 0}}"));
    runs.back().state = "finished";
  }
  runs[2].state = "unfinished";
  runs[3].state = "running";
  runs[6].is_int8 = true;
  runs[7].state = "unfinished";
  std::vector<std::string> labels = seed_labels(runs);
  EXPECT_THAT(labels, testing::Each("as configured"));
  set_apart(runs, labels);
  EXPECT_THAT(labels, ElementsAre("as configured", "as configured", "as configured, unfinished",
                                  "as configured, running", "as configured, same seed (2)",
                                  "as configured, same seed (3)", "as configured, int8",
                                  "as configured, unfinished (2)"));
}

TEST(SeedLabels, AreTheSettingsThatDiffer) {
  EXPECT_THAT(seed_labels({configured("a", "{x: {lr: 1}, train: {seed: 1, threads: 2}}"),
                           configured("b", "{x: {lr: 1}, train: {seed: 2}}"),
                           configured("c", "{x: {lr: 2, kind: \"on\"}, train: {seed: 1}}")}),
              ElementsAre("lr=1", "lr=1", "kind=on, lr=2"));
  // Names of runs say it better, where they do.
  EXPECT_THAT(seed_labels({configured("small-0", "{x: {f: [a]}, train: {seed: 1}}"),
                           configured("small-1", "{x: {f: [a]}, train: {seed: 2}}"),
                           configured("large", "{x: {f: [b]}, train: {seed: 1}}")}),
              ElementsAre("small", "small", "large"));
  EXPECT_THAT(seed_labels({configured("0", "{x: {f: [a]}, train: {seed: 1}}"),
                           configured("1", "{x: {f: [a]}, train: {seed: 2}}"),
                           configured("2", "{x: {f: [b]}, train: {seed: 1}}")}),
              ElementsAre("f.0=a", "f.0=a", "f.0=b"));
  EXPECT_THAT(
      seed_labels({configured("a", "{train: {seed: 1}}"), configured("b", "{train: {seed: 2}}")}),
      ElementsAre("as configured", "as configured"));
}

}  // namespace
}  // namespace lacuna::differences_test
