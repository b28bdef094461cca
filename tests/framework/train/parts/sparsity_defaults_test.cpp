// What a configuration may leave out of `sparsity` and of its schedules.
#include "lacuna/framework/train/parts/sparsity_defaults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/sparsity/configure.h"
#include "throws.h"

namespace lacuna::sparsity_defaults_test {
namespace {

using testing::HasSubstr;

constexpr const char* kMlp =
    "[flatten, {type: linear, name: fc1, out_features: 8}, relu, "
    "{type: linear, name: fc2, out_features: 10}]";

// 400 steps, 2 an epoch, unless `train` says something else.
std::unique_ptr<Experiment> build(const std::string& sparsity, const std::string& model = kMlp,
                                  Start start = Start::Fresh,
                                  const std::string& train = "steps: 400",
                                  const std::string& optimizer = "{type: sgd, lr: 0.1}") {
  return build_experiment(
      parse_yaml("data: {type: glyphs, train_size: 40, test_size: 10}\nmodel: " + model +
                     "\noptimizer: " + optimizer + "\ntrain: {batch_size: 20, threads: 1, " +
                     train + "}\nsparsity: " + sparsity + "\n",
                 "e.yaml"),
      start);
}

std::string sparse_names(const Experiment& e) {
  std::string names;
  for (const ParameterPtr& parameter : e.sparsity->parameters()) names += parameter->name() + " ";
  return names;
}

std::string chosen(const Experiment& e, const char* path) { return e.config.peek(path).to_json(); }

TEST(SparsityDefaults, LeaveTheOutputLayerDense) {
  for (const char* sparsity :
       {"0.5", "{sparsity: 0.5}", "{algorithm: set, sparsity: 0.5}",
        "{algorithm: snip, density: 0.5}", "{pattern: {type: nm, n: 2, m: 4}}",
        "{algorithm: magnitude, sparsity: 0.5}"}) {
    const auto e = build(sparsity);
    EXPECT_EQ(sparse_names(*e), "fc1.weight ") << sparsity;
    EXPECT_EQ(chosen(*e, "sparsity.param_filter"), R"({"except": ["fc2.weight"]})") << sparsity;
    EXPECT_EQ(why_dense(*e, *e->model->parameter("fc2.weight")), "the output layer");
    EXPECT_EQ(why_dense(*e, *e->model->parameter("fc1.weight")), "");
    EXPECT_THAT(e->chosen, HasSubstr("the output layer (fc2.weight) stays dense"));
    // What was resolved says the same.
    EXPECT_EQ(sparse_names(*build_experiment(e->config.clone())), "fc1.weight ") << sparsity;
  }
  EXPECT_EQ(sparse_names(*build("{sparsity: 0.5, param_filter: '*.weight'}")),
            "fc1.weight fc2.weight ");
  EXPECT_EQ(sparse_names(*build("{sparsity: 0.5, param_filter: default}")),
            "fc1.weight fc2.weight ");
  const auto group =
      build("[{param_filter: fc2.weight, sparsity: 0.2}, {algorithm: set, sparsity: 0.5}]");
  EXPECT_EQ(sparse_names(*group), "fc2.weight fc1.weight ");
  EXPECT_EQ(chosen(*group, "sparsity.1.param_filter"), R"({"except": ["fc2.weight"]})");
}

TEST(SparsityDefaults, KnowTheLayerThatGivesTheOutputs) {
  const auto filter = [](const std::string& model) {
    return chosen(*build("0.5", model), "sparsity.param_filter");
  };
  EXPECT_EQ(filter("[flatten, {type: linear, out_features: 8}, {type: sequential, name: "
                   "head, layers: [{type: linear, name: a, out_features: 8}, relu, "
                   "{type: linear, name: b, out_features: 10}, relu]}]"),
            R"({"except": ["head.b.weight"]})");
  // The last weight is one of several branches that are joined.
  EXPECT_EQ(filter("[flatten, {type: linear, out_features: 10}, {type: residual, layers: "
                   "[{type: linear, out_features: 10}]}]"),
            R"("default")");
  expect_throws<ConfigError>([&] { build("0.5", "[flatten, linear]"); },
                             "e.yaml:5:11: sparsity: the output layer 'linear1.weight' is all that "
                             "could be sparse, and it stays dense unless it is named: give "
                             "param_filter: linear1.weight");
  EXPECT_EQ(
      sparse_names(*build("{sparsity: 0.5, param_filter: linear1.weight}", "[flatten, linear]")),
      "linear1.weight ");
}

TEST(SparsityDefaults, KeepWhatRunsBeganWith) {
  EXPECT_EQ(sparse_names(*build("0.5", kMlp, Start::FromCheckpoint)), "fc1.weight fc2.weight ");
  const auto e = build("{algorithm: set, sparsity: 0.5}", kMlp, Start::FromCheckpoint);
  EXPECT_EQ(sparse_names(*e), "fc1.weight fc2.weight ");
  EXPECT_EQ(e->plan().front().update_steps.size(), 400u);
}

TEST(SparsityDefaults, LeaveOutByGlobs) {
  const std::string model =
      "[flatten, {type: linear, name: a, out_features: 8}, {type: linear, name: b, "
      "out_features: 8}, {type: linear, name: c, out_features: 10}]";
  EXPECT_EQ(sparse_names(*build("{sparsity: 0.5, param_filter: {except: b.weight}}", model)),
            "a.weight c.weight ");
  EXPECT_EQ(sparse_names(*build("{sparsity: 0.5, param_filter: {except: [b.*, 'c*']}}", model)),
            "a.weight ");
  expect_throws<ConfigError>(
      [&] { build("{sparsity: 0.5, param_filter: {except: b.wieght}}", model); },
      "param_filter 'b.wieght' matches no parameter; did you mean 'b.weight'?");
  expect_throws<ConfigError>([&] { build("{sparsity: 0.5, param_filter: {except: '*'}}", model); },
                             "a.weight (left out by `except`)");
  expect_throws<ConfigError>([&] { build("{sparsity: 0.5, param_filter: {exept: '*'}}", model); },
                             "did you mean 'except'");
}

TEST(SparsityDefaults, UpdateMasksAHundredTimesWithinThreeQuarters) {
  for (const char* algorithm : {"set", "rigl", "snfs", "ste"}) {
    const auto e = build(std::string("{algorithm: ") + algorithm + ", sparsity: 0.5}");
    EXPECT_EQ(chosen(*e, "sparsity.update"), R"({"freq": 4, "start": 0, "stop": 300})");
    EXPECT_THAT(e->chosen, HasSubstr("sparsity.update: every 4 steps until step 300"));
    EXPECT_EQ(e->plan().front().update_steps.back(), 296) << algorithm;
  }
  const auto updates = [](const std::string& train) {
    return chosen(*build("{algorithm: set, sparsity: 0.5}", kMlp, Start::Fresh, train),
                  "sparsity.update");
  };
  EXPECT_EQ(updates("steps: 1"), R"({"freq": 1, "start": 0, "stop": 2})");
  EXPECT_EQ(updates("steps: 1570"), R"({"freq": 15, "start": 0, "stop": 1178})");
  EXPECT_EQ(updates("epochs: 100000"), R"({"freq": 100, "start": 0, "stop": 150000})");
  const auto own = build("{algorithm: set, sparsity: 0.5, update: {stop: 50}}");
  EXPECT_EQ(chosen(*own, "sparsity.update"), R"({"stop": 50, "freq": 4, "start": 0})");
  // Its own updates are at `every`.
  EXPECT_TRUE(build("{algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}}")
                  ->config.peek("sparsity.update")
                  .is_null());
}

TEST(SparsityDefaults, EndCompressedWhereUpdatesAlternate) {
  for (const int steps : {1, 2, 3, 19, 20, 21, 39, 100, 400, 1570}) {
    const auto e = build("{algorithm: acdc, sparsity: 0.5}", kMlp, Start::Fresh,
                         "steps: " + std::to_string(steps));
    EXPECT_EQ(e->plan().front().update_steps.size() % 2, 1u) << steps;
    EXPECT_EQ(e->plan().front().final_nnz, 28 * 28 * 8 / 2) << steps;
  }
}

TEST(SparsityDefaults, PruneGraduallyToAPlainSparsity) {
  for (const char* algorithm : {"gmp", "saliency"}) {
    const auto e = build(std::string("{algorithm: ") + algorithm + ", sparsity: 0.75}");
    EXPECT_EQ(
        chosen(*e, "sparsity.sparsity"),
        R"({"type": "polynomial", "init": 0.0, "final": 0.75, "start": 0, "end": 296, "power": 3.0})");
    const PlannedParameter planned = e->plan().front();
    EXPECT_EQ(planned.initial_nnz, planned.shape.numel());
    EXPECT_EQ(planned.final_nnz, planned.shape.numel() / 4);
    EXPECT_THAT(e->chosen, HasSubstr("sparsity.sparsity: cubic from 0 to 0.75"));
  }
  const auto own = build("{algorithm: gmp, sparsity: 0.75, update: {freq: 7}}");
  EXPECT_EQ(own->config.peek("sparsity.sparsity.end").text(), "294");
  EXPECT_EQ(own->config.peek("sparsity.update").to_json(), R"({"freq": 7, "start": 0})");
  expect_throws<ConfigError>([] { build("{algorithm: gmp, sparsity: 75}"); }, "as 0.75 for 75 %");

  const std::string two_of_four = ", pattern: {type: nm, n: 2, m: 4}}";
  for (const char* algorithm : {"rigl, sparsity: 0.4", "set, sparsity: 0.9", "ste, sparsity: 0.3",
                                "rigl, layout: nm, sparsity: 0.4"}) {
    expect_throws<ConfigError>(
        [&] { build(std::string("{algorithm: ") + algorithm + two_of_four); },
        "leave `sparsity` out");
  }
  const auto less = build("{algorithm: gmp, sparsity: 0.4" + two_of_four);
  EXPECT_NEAR(static_cast<double>(less->plan().front().final_nnz), 0.6 * 28 * 28 * 8, 2.0);
}

TEST(SparsityDefaults, GoByThePhasesOwnLength) {
  const auto e = build(
      "{phases: [{until: 25 %, algorithm: dense}, {until: 150 epochs, algorithm: set, sparsity: "
      "0.5}, {algorithm: gmp, sparsity: {type: polynomial, init: 0.5, final: 0.75, end: 50 %}}]}");
  EXPECT_EQ(e->config.peek("sparsity.phases.0.until").text(), "100");
  EXPECT_EQ(e->config.peek("sparsity.phases.1.until").text(), "300");
  EXPECT_EQ(chosen(*e, "sparsity.phases.1.update"), R"({"freq": 2, "start": 0, "stop": 150})");
  EXPECT_EQ(e->config.peek("sparsity.phases.2.sparsity.end").text(), "50");
  EXPECT_EQ(e->plan().back().final_nnz, 28 * 28 * 8 / 4);
}

// Every algorithm trains with nothing but its name and how sparse.
TEST(SparsityDefaults, DoForEveryAlgorithm) {
  AlgorithmRegistry built_in("sparsity algorithm");
  register_algorithms(built_in);
  for (const std::string& name : built_in.names()) {
    const std::string pattern =
        name == "semi_sparse" ? ", pattern: {type: block, rows: 2, cols: 2}" : "";
    const std::string target = name == "dense" ? "" : ", sparsity: 0.5";
    for (const char* train : {"steps: 1", "steps: 7", "steps: 400"}) {
      const auto e =
          build("{algorithm: " + name + target + pattern + "}", kMlp, Start::Fresh, train);
      const int64_t left = name == "dense" ? 28 * 28 * 8 : 28 * 28 * 4;
      EXPECT_EQ(e->plan().front().final_nnz, left) << name << ", " << train;
    }
  }
}

TEST(RunPositions, AreStepsEpochsAndParts) {
  const auto e = build(
      "{algorithm: rigl, sparsity: 0.5, update: {freq: 1 epoch, start: 10 steps, "
      "stop: 62.5%}, drop_fraction: {type: cosine, init: 0.3, half_period: 75 %}}",
      kMlp, Start::Fresh, "steps: 400",
      "{type: sgd, warmup: 5 %, lr: {type: multi_step, init: 0.1, milestones: [50 "
      "%, 150 epochs]}, groups: [{params: '*.bias', lr: {type: cosine, init: 0.1}}]}");
  EXPECT_EQ(chosen(*e, "sparsity.update"), R"({"freq": 2, "start": 10, "stop": 250})");
  EXPECT_EQ(chosen(*e, "sparsity.drop_fraction.half_period"), "300");
  EXPECT_EQ(chosen(*e, "optimizer.warmup"), "20");
  EXPECT_EQ(chosen(*e, "optimizer.lr.milestones"), "[200, 300]");
  EXPECT_EQ(
      chosen(*e, "optimizer.groups.0.lr"),
      R"({"type": "cosine_once", "init": 0.1, "start": 20, "half_period": 380, "minimum": 0.0})");
}

TEST(RunPositions, GiveACosineTheRestOfTheRun) {
  const auto e = build("{algorithm: rigl, sparsity: 0.5, drop_fraction: {type: cosine, init: 0.3}}",
                       kMlp, Start::Fresh, "steps: 400",
                       "{type: adam, lr: {type: Cosine, init: 0.01, minimum: 0.001}}");
  EXPECT_EQ(e->config.peek("optimizer.lr.half_period").text(), "400");
  EXPECT_EQ(e->config.peek("optimizer.lr.type").text(), "cosine_once");
  EXPECT_EQ(e->config.peek("sparsity.drop_fraction.half_period").text(), "300");
}

TEST(RunPositions, RefuseWhatIsNoPlaceInARun) {
  const auto refuse = [](const std::string& stop, const char* message) {
    expect_throws<ConfigError>(
        [&] { build("{algorithm: set, sparsity: 0.5, update: {freq: 2, stop: " + stop + "}}"); },
        message);
  };
  refuse("101 %",
         "e.yaml:5:67: sparsity.update.stop: expected 0 % to 100 % of the run, found '101");
  refuse("-1 %", "expected 0 % to 100 % of the run, found '-1 %'");
  refuse("-3 epochs", "expected a position such as '500 steps', '3 epochs' or '75 %'");
  refuse("1e300 epochs", "expected a position such as");
  refuse("nan epochs", "expected a position such as");
  refuse("3 weeks", "expected an integer, found '3 weeks'");
  expect_throws<ConfigError>([] { build("{sparsity: 75 %}"); }, "e.yaml:5:22: sparsity.sparsity");
}

}  // namespace
}  // namespace lacuna::sparsity_defaults_test
