#include "lacuna/framework/program/settings/config_changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "throws.h"

namespace lacuna::config_changes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kRun =
    "model: [flatten, {type: linear, out_features: 4, bias: true}]\n"
    "optimizer: {type: sgd, lr: 0.1}\n"
    "train: {epochs: 3, seed: 0, checkpoint: {every: 1 epoch}}\n"
    "data: {type: mnist, dir: a}\n";

Config run() {
  register_builtins();  // whose paths may change
  return parse_yaml(kRun, "run.yaml");
}
Config given(const std::string& yaml) { return parse_yaml(yaml, "given.yaml"); }

TEST(Overrides, KeepOneUnitOfLength) {
  Config config = run();
  apply_overrides(config, {"train.steps=5"});
  EXPECT_FALSE(config.at("train").has("epochs"));
  apply_overrides(config, {"train.epochs=2", "optimizer.lr=0.2"});
  EXPECT_FALSE(config.at("train").has("steps"));
  EXPECT_EQ(config.at("optimizer").required<double>("lr"), 0.2);
  apply_overrides(config, {"train.steps=5", "train.epochs=null"});
  EXPECT_EQ(config.at("train").required<int64_t>("steps"), 5);
}

TEST(ResumeOverrides, MayChangeWhatDoesNotTouchTheNumbers) {
  Config config = run();
  apply_resume_overrides(
      config, {"data.dir=b", "train.epochs=9", "train.threads=2", "train.checkpoint.keep_last=1",
               "train.eval_every=5", "train.log_every=7", "train.checkpoint={every: 3}"});
  EXPECT_EQ(config.at("data").at("dir").text(), "b");
  EXPECT_EQ(config.at("train").at("checkpoint").at("every").text(), "3");
}

TEST(ResumeOverrides, RefuseTheRestButNoValueThatIsThere) {
  Config config = run();
  apply_resume_overrides(config, {"optimizer.lr=1e-1", "model.1.bias=true", "train.seed=0",
                                  "data={dir: a, type: mnist}"});
  for (const char* setting :
       {"optimizer.lr=0.2", "model.1.bias=false", "train.seed=1", "data.type=glyphs",
        "train.check=1", "train.epochs2=1", "foo.bar=1", "train=null"}) {
    expect_throws<ConfigError>([&] { apply_resume_overrides(config, {setting}); },
                               "--set " + std::string(setting) + ": a resumed run keeps ");
  }
  EXPECT_EQ(config, run());
}

// Where a split or a vocabulary lies is another matter than what is held out.
TEST(ResumeOverrides, MayMoveFilesAndKeepFractions) {
  Config config = run();
  config.set_path("data.validation", Config("dev.txt"));
  config.set_path("data.vocab", Config("vocab.txt"));
  config.set_path("data.test", Config(0.0));
  apply_resume_overrides(config, {"data.validation=b/dev.txt", "data.vocab=b/vocab.txt",
                                  "data.merges=b/merges.txt", "data.test=b/test.txt"});
  EXPECT_EQ(config.at("data").at("validation").text(), "b/dev.txt");
  EXPECT_EQ(config.at("data").at("vocab").text(), "b/vocab.txt");
  for (const char* setting : {"data.validation=0.2", "data.validation=null", "data.test=0.1"}) {
    expect_throws<ConfigError>([&] { apply_resume_overrides(config, {setting}); },
                               "data.validation (one path for another)");
  }
  config.set_path("data.validation", Config(0.1));
  expect_throws<ConfigError>([&] { apply_resume_overrides(config, {"data.validation=dev.txt"}); },
                             "a resumed run keeps data.validation = 0.1");
}

TEST(Overrides, MakeAMapOfALossThatIsAName) {
  Config config = parse_yaml("loss: cross_entropy", "a.yaml");
  apply_overrides(config, {"loss.label_smoothing=0.1"});
  EXPECT_EQ(config.at("loss").at("type").text(), "cross_entropy");
  EXPECT_EQ(config.at("loss").at("label_smoothing").text(), "0.1");
}

// Looking at a key must not make it known, or a typing mistake would pass.
TEST(Overrides, MakeAMapOfASparsityThatIsANumber) {
  Config config = parse_yaml("sparsity: 0.9\n", "c.yaml");
  apply_overrides(config, {"sparsity.algorithm=set", "sparsity.update.freq=10"});
  EXPECT_EQ(config.at("sparsity").required<double>("sparsity"), 0.9);
  EXPECT_EQ(config.at("sparsity").required<std::string>("algorithm"), "set");
  apply_overrides(config, {"sparsity.sparsity=0.95"});
  EXPECT_EQ(config.at("sparsity").required<double>("sparsity"), 0.95);
}

TEST(ResumeOverrides, LeaveUnknownKeysUnread) {
  Config config = run();
  apply_resume_overrides(config, {"train.checkpoint.evry=1"});
  require_same_model(config, given(kRun));
  unused_changes(config, given(kRun));
  config.at("train").at("checkpoint").get("every");
  expect_throws<ConfigError>([&] { config.at("train").at("checkpoint").require_all_read(); },
                             "unknown key 'evry'; did you mean 'every'?");
}

// A run's layers are maps, with their defaults; a configuration may name their types alone.
TEST(SameModel, TakesATypeForTheLayerThatItNames) {
  Config config = run();
  config.set("model", parse_yaml("[flatten, {type: linear, bias: true}, {type: residual, layers: "
                                 "[relu, {type: linear, bias: true}]}]",
                                 "model.yaml"));
  require_same_model(config, given("model: [flatten, linear, {type: residual, layers: [relu, "
                                   "linear]}]\n"));
  require_same_model(config, given("model: [{type: flatten}, linear, {type: residual, layers: "
                                   "[{type: relu}, linear]}]\n"));
  expect_throws<ConfigError>(
      [&] {
        require_same_model(config, given("model: [flatten, relu, {type: residual, layers: [relu, "
                                         "conv2d]}]\n"));
      },
      "model.1.type: the run has linear, the configuration given relu; model.2.layers.1.type: the "
      "run has linear, the configuration given conv2d");
}

TEST(SameModel, ShowsEachDifference) {
  require_same_model(run(), Config());
  require_same_model(run(), given("model: [flatten, {type: linear, out_features: 4}]\n"));
  expect_throws<ConfigError>(
      [] { require_same_model(run(), given("model: [relu, {type: linear, out_features: 5}]\n")); },
      "a run cannot be resumed with another model: model.0: the run has flatten, the configuration "
      "given relu; model.1.out_features: the run has 4, the configuration given 5");
  expect_throws<ConfigError>([] { require_same_model(run(), given("model: [flatten]\n")); },
                             "model: the run has [\"flatten\", {\"type\": \"linear\"");
}

TEST(UnusedChanges, NameTheRunsValueAndHowToChangeIt) {
  EXPECT_THAT(unused_changes(run(), Config()), IsEmpty());
  EXPECT_THAT(unused_changes(run(), given("run_dir: x\ntrain: {epochs: 3}\n")), IsEmpty());
  EXPECT_THAT(unused_changes(run(), given("train: {epochs: 4}\noptimizer: {lr: 2, eps: 1}\n")),
              ElementsAre("train.epochs: the run has 3, the configuration given 4; the run's is "
                          "used (change it with --set)",
                          "optimizer.lr: the run has 0.1, the configuration given 2; the run's is "
                          "used",
                          "optimizer.eps: the run has nothing, the configuration given 1; the "
                          "run's is used"));
}

}  // namespace
}  // namespace lacuna::config_changes_test
