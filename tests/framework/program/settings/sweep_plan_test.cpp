// Which runs a sweep has, and what their folders are called.
#include "lacuna/framework/program/settings/sweep_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "lacuna/framework/core/error.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::sweep_plan_test {
namespace {

std::vector<std::string> names_of(const std::vector<SweepRun>& runs) {
  std::vector<std::string> names;
  for (const SweepRun& run : runs) names.push_back(run.name);
  return names;
}

TEST(SweepPlan, NamesEachCombinationAndSeed) {
  EXPECT_EQ(names_of(plan_sweep({"a.b=0.8,0.9", "c=x"}, 0, 2)),
            (std::vector<std::string>{"b=0.8,c=x,seed=0", "b=0.8,c=x,seed=1", "b=0.9,c=x,seed=0",
                                      "b=0.9,c=x,seed=1"}));
  EXPECT_EQ(names_of(plan_sweep({}, 7, 1)), (std::vector<std::string>{"seed=7"}));
  EXPECT_EQ(plan_sweep({"a=1"}, 7, 1)[0].overrides,
            (std::vector<std::string>{"a=1", "train.seed=7"}));
}

// Keys by their last parts, where these differ and are no numbers; long values by their words.
TEST(SweepPlan, GivesFoldersShortNames) {
  EXPECT_EQ(names_of(plan_sweep({"a.lr=1", "b.lr=2", "model.0=3"}, 0, 1)),
            (std::vector<std::string>{"a.lr=1,b.lr=2,model.0=3,seed=0"}));
  EXPECT_EQ(names_of(plan_sweep({"x.seed=1"}, 0, 1)),
            (std::vector<std::string>{"x.seed=1,seed=0"}));
  EXPECT_EQ(names_of(plan_sweep({"sparsity={algorithm: rigl, sparsity: 0.9},null"}, 0, 1)),
            (std::vector<std::string>{"sparsity=algorithm-rigl-sparsity-0.9,seed=0",
                                      "sparsity=null,seed=0"}));
  EXPECT_EQ(names_of(plan_sweep({"mean=[-1, .5],[1, 5]", "d={x: 1e+3},{x: 1e-3}"}, 0, 1)),
            (std::vector<std::string>{"mean=-1-.5,d=x-1e+3,seed=0", "mean=-1-.5,d=x-1e-3,seed=0",
                                      "mean=1-5,d=x-1e+3,seed=0", "mean=1-5,d=x-1e-3,seed=0"}));
  const std::string long_value(300, 'x');
  const SweepRun run = plan_sweep({"a=" + long_value}, 0, 1)[0];
  EXPECT_LT(run.name.size(), 60u);
  EXPECT_EQ(run.long_name, "a=" + long_value + ",seed=0");
  EXPECT_EQ(run.overrides[0], "a=" + long_value);
  EXPECT_NE(run.name, plan_sweep({"a=" + long_value + "y"}, 0, 1)[0].name);
}

TEST(SweepPlan, DrawsFromRangesAndLists) {
  const std::vector<std::string> over = {"lr=log:1e-4..1e-2", "p=0.25..0.75",  "n=4..6",
                                         "w=log:16..256",     "q=linear:1..2", "kind=adam,sgd"};
  const std::vector<SweepRun> runs = plan_sweep(over, 0, 1, {.count = 50, .seed = 3});
  ASSERT_EQ(runs.size(), 50u);
  std::map<std::string, std::set<double>> seen;
  int below_mean = 0, adam = 0;
  for (const SweepRun& run : runs) {
    for (const std::string& text : run.overrides) {
      const std::string key = text.substr(0, text.find('=')),
                        value = text.substr(text.find('=') + 1);
      if (key == "kind") {
        adam += value == "adam" ? 1 : 0;
        continue;
      }
      seen[key].insert(std::stod(value));
      if (key == "lr") below_mean += std::stod(value) < 1e-3 ? 1 : 0;
      if (key == "n" || key == "w") {
        EXPECT_EQ(value.find('.'), std::string::npos) << text;
      }
    }
  }
  EXPECT_EQ(seen["n"], (std::set<double>{4, 5, 6}));
  for (const auto& [key, low, high] :
       {std::tuple{"lr", 1e-4, 1e-2}, {"p", 0.25, 0.75}, {"w", 16.0, 256.0}, {"q", 1.0, 2.0}}) {
    EXPECT_GE(*seen[key].begin(), low) << key;
    EXPECT_LE(*seen[key].rbegin(), high) << key;
    EXPECT_GT(seen[key].size(), 10u) << key;
  }
  EXPECT_GT(below_mean, 15);  // half of them: the logarithm is uniform
  EXPECT_LT(below_mean, 35);
  EXPECT_GT(adam, 10);
  EXPECT_LT(adam, 40);
  // The same again, the first of more, and others by another seed.
  EXPECT_EQ(names_of(plan_sweep(over, 0, 1, {.count = 50, .seed = 3})), names_of(runs));
  EXPECT_EQ(names_of(plan_sweep(over, 0, 1, {.count = 60, .seed = 3}))[49], runs[49].name);
  EXPECT_NE(names_of(plan_sweep(over, 0, 1, {.count = 50, .seed = 4})), names_of(runs));
  EXPECT_EQ(plan_sweep({"n=1..3"}, 0, 2, {.count = 3}).size(), 6u);  // all different
}

TEST(SweepPlan, RefusesRangesThatCannotBeMeant) {
  const auto refused = [](const std::string& over, int64_t draws, const std::string& message) {
    expect_throws<ConfigError>([&] { plan_sweep({over}, 0, 1, {.count = draws}); }, message);
  };
  refused("lr=1e-4..1e-2", 0, "a range needs --random N");
  refused("lr=2..1", 3, "the range ends where it begins, or before");
  refused("lr=log:0..1", 3, "a logarithmic range must begin above 0, found 0");
  refused("lr=log:a..b", 3, "expected two numbers, as log:1..100");
  refused("lr=log:3", 3, "expected a range, as log:1..100");
  refused("lr=0.1..0.2,0.5", 3, "a range cannot be combined with other values");
  refused("n=1..3", 4, "only 3 different combinations were found");
  expect_throws<ConfigError>([] { plan_sweep({}, 0, 1, {.count = 3}); }, "no --over to draw from");
  // A path with dots is a value.
  EXPECT_EQ(plan_sweep({"data.dir=../data"}, 0, 1)[0].overrides[0], "data.dir=../data");
}

TEST(SweepPlan, TakesNamedSettingsOfAFile) {
  const TemporaryFolder folder;
  const std::string file = folder / "named.yaml";
  write_text(file,
             "dense: {sparsity: null}\n"
             "rigl 90:\n  sparsity: {algorithm: rigl, sparsity: 0.9}\n  optimizer.lr: 0.01\n"
             "plain:\n");
  const std::vector<SweepRun> runs = plan_sweep({file, "train.epochs=1,2"}, 0, 1);
  EXPECT_EQ(names_of(runs),
            (std::vector<std::string>{"dense,epochs=1,seed=0", "dense,epochs=2,seed=0",
                                      "rigl 90,epochs=1,seed=0", "rigl 90,epochs=2,seed=0",
                                      "plain,epochs=1,seed=0", "plain,epochs=2,seed=0"}));
  EXPECT_EQ(runs[0].overrides,
            (std::vector<std::string>{"sparsity=null", "train.epochs=1", "train.seed=0"}));
  EXPECT_EQ(runs[2].overrides[0], R"(sparsity={"algorithm": "rigl", "sparsity": 0.9})");
  expect_throws<ConfigError>(
      [&] {
        plan_sweep({file, "optimizer.lr=1,2"}, 0, 1);
      },
      "the key optimizer.lr is given twice");
  write_text(file, "a: {train.seed: 3}");
  expect_throws<ConfigError>([&] { plan_sweep({file}, 0, 1); }, "seeds are given by --seeds");
  write_text(file, "a: 3");
  expect_throws<ConfigError>([&] { plan_sweep({file}, 0, 1); },
                             "named.yaml:1:4: a: expected a map from dotted keys to values");
  write_text(file, "[1]");
  expect_throws<ConfigError>([&] { plan_sweep({file}, 0, 1); }, "expected a map from names");
  expect_throws<ConfigError>([&] { plan_sweep({folder / "none.yaml"}, 0, 1); },
                             "expected path=value,value,..., or a YAML file of named settings");
}

TEST(SweepPlan, SplitsAtCommasOutsideOfBracketsAndQuotes) {
  EXPECT_EQ(split_over("k=[1, 2],{a: [3, 4], b: 5}, \"x,y\" ,z=1"),
            (std::vector<std::string>{"k", "[1, 2]", "{a: [3, 4], b: 5}", "\"x,y\"", "z=1"}));
}

TEST(SweepPlan, RefusesWhatCannotBeMeant) {
  expect_throws<ConfigError>([] { split_over("noequals"); }, "expected path=value,value");
  expect_throws<ConfigError>([] { split_over("a=1,,2"); }, "a value is empty");
  expect_throws<ConfigError>([] { split_over("a=1,1"); }, "the value 1 is given twice");
  for (const char* twice : {"3,3.0", "0.001,1e-3", "adam,\"adam\"", "true,True", "[1, 2],[1,2]"}) {
    expect_throws<ConfigError>([&] { split_over(std::string("a=") + twice); }, "is given twice");
  }
  EXPECT_EQ(split_over("a=3,\"3\",4").size(), 4u);
  expect_throws<ConfigError>([] { plan_sweep({"a=1", "a=2"}, 0, 1); }, "the key a is given twice");
  expect_throws<ConfigError>([] { plan_sweep({"train.seed=1,2"}, 0, 1); }, "given by --seeds");
  expect_throws<ConfigError>([] { plan_sweep({"a=x/y,x_y"}, 0, 1); }, "two runs would have");
}

}  // namespace
}  // namespace lacuna::sweep_plan_test
