// `lacuna plan`: what it prints, and what it and `train` refuse before any training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::plan_command_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::StartsWith;

/// The tiny run: 18 steps, 6 in an epoch; fc1 [12, 784], fc2 [10, 12].
class PlanCommand : public RunFixture {
 protected:
  Ended plan(const std::string& sparsity, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"plan", config(), "--set", "sparsity=" + sparsity};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  Config plan_json(const std::string& sparsity) const {
    const Ended ended = plan(sparsity, {"--json"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return parse_yaml(ended.out, "plan");
  }
  /// `plan` and `train` refuse it in the same words, and leave nothing behind.
  void refuses(const std::string& sparsity, const std::string& message) const {
    const Ended planned = plan(sparsity), trained = train({"--set", "sparsity=" + sparsity});
    for (const Ended& ended : {planned, trained}) {
      EXPECT_EQ(ended.code, 2) << sparsity;
      EXPECT_EQ(ended.out, "") << sparsity;
      EXPECT_THAT(ended.err, HasSubstr("sparsity: ")) << sparsity;
      EXPECT_THAT(ended.err, HasSubstr(message)) << sparsity;
    }
    EXPECT_EQ(planned.err, trained.err) << sparsity;
    EXPECT_EQ(listing(folder_.path()), "config.yaml") << sparsity;
  }
};

/// The lines, each run of spaces made one.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines{""};
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != ' ' || !lines.back().ends_with(' ')) {
      lines.back() += c;
    }
  }
  lines.pop_back();
  return lines;
}

TEST_F(PlanCommand, CountsATiedWeightOnce) {
  const Ended ended =
      plan("null", {"--set",
                    "model=[flatten, {type: linear, name: a, out_features: 10}, {type: "
                    "linear, name: b, out_features: 784}, {type: linear, name: c, "
                    "tied_to: a, bias: false}]"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::vector<std::string> lines = lines_of(ended.out);
  EXPECT_THAT(lines, IsSupersetOf({"18 steps, 6 in an epoch; 16474 parameters, 16474 nonzeros at "
                                   "the end",
                                   "a linear [10] 7850 7850 15680 15680 31360 31360",
                                   "c linear [10] 0 0 15680 15680 47040 47040 tied to a",
                                   "all 16474 16474 47040 47040 125440 125440"}));
}

TEST_F(PlanCommand, PrintsALineForEveryParameter) {
  const Ended ended = plan("{algorithm: rigl, sparsity: 0.9, update: {freq: 4, stop: 14}}");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(
      lines_of(ended.out),
      ElementsAre(
          "18 steps, 6 in an epoch; 9550 parameters, 1082 nonzeros at the end", "",
          "layer type output parameters final nnz inference FLOPs dense training FLOPs dense",
          "flatten1 flatten [784]", "fc1 linear [12] 9420 952 1880 18816 3760 37632",
          "relu1 relu [12]", "dropout1 dropout [12]", "fc2 linear [10] 130 130 240 240 720 720",
          "all 9550 1082 2120 19056 4480 38352", StartsWith("FLOPs of one example: "),
          StartsWith("those of each step"), "",
          "parameter shape algorithm initial nnz final nnz sparsity updates chosen by",
          "fc1.weight [12, 784] rigl 940 940 0.9001 step 4, 8, 12 the default filter "
          "without 'fc2.weight'",
          "fc1.bias [12] none 12 12 0.0000 -",
          "fc2.weight [10, 12] none 120 120 0.0000 - dense: the output layer",
          "fc2.bias [10] none 10 10 0.0000 -", "chosen: the output layer (fc2.weight) stays dense",
          AllOf(StartsWith("fc1.weight is stored as "), HasSubstr("csr is faster up to a density "),
                HasSubstr(" ms per step")),
          "evaluation runs 30 examples at a time, whose activations take about 0.2 MB",
          StartsWith("time: "), StartsWith("dense: "), HasSubstr(" than dense; 8.56 times less ")));
}

TEST_F(PlanCommand, ShowsDensitiesOfADistributionAndTheirTotal) {
  const Ended ended = plan("{sparsity: 0.9, distribution: erk, param_filter: default}");
  EXPECT_THAT(ended.out, HasSubstr("the 2 sparse parameters together: density 0.0999 at first, "
                                   "0.0999 at the end (952 of 9528)"));
}

TEST_F(PlanCommand, SaysWhatIsFrozen) {
  const Ended ended =
      plan("{sparsity: 0.5, param_filter: default}", {"--set", "model.1.trainable=false"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(lines_of(ended.out),
              IsSupersetOf({testing::Eq("fc1.weight [12, 784] frozen 9408 9408 0.0000 -"),
                            testing::Eq("fc1.bias [12] frozen 12 12 0.0000 -")}));
  ASSERT_EQ(train({"--set", "sparsity={sparsity: 0.5, param_filter: default}", "--set",
                   "model.1.trainable=false"})
                .code,
            0);
  EXPECT_EQ(summary(run_dir()).required<int>("frozen"), 9420);
}

TEST_F(PlanCommand, NamesThePatternsLayout) {
  const Ended ended =
      plan("{algorithm: static, pattern: {type: nm, n: 2, m: 4}, param_filter: fc1.weight}");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr(", pattern 2:4; nm 2:4 is faster up to a density of "),
                               HasSubstr("nm 2:4 "), testing::Not(HasSubstr("csr"))));
}

TEST_F(PlanCommand, CountsManyUpdatesAndNamesTheFilterThatChose) {
  const Ended ended = plan(
      "[{algorithm: gmp, param_filter: 'fc1.*', update: {freq: 2}, "
      "sparsity: {type: polynomial, init: 0, final: 0.5, start: 0, end: 18}}, "
      "{algorithm: static, sparsity: 0.75, param_filter: [fc2.weight, fc2.b]}]");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("param_filter 'fc2.b' matches no parameter"));
  const Ended good = plan(
      "[{algorithm: gmp, param_filter: 'fc1.w*', update: {freq: 2}, "
      "sparsity: {type: polynomial, init: 0, final: 0.5, start: 0, end: 18}}, "
      "{algorithm: static, sparsity: 0.75, param_filter: fc2.weight}]");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(lines_of(good.out),
              IsSupersetOf({"fc1.weight [12, 784] gmp 9408 4704 0.5000 9 updates, steps 2 to 18 "
                            "'fc1.w*'",
                            "fc2.weight [10, 12] static 30 30 0.7500 - 'fc2.weight'"}));
}

TEST_F(PlanCommand, WritesJson) {
  const Config json =
      plan_json("{algorithm: set, sparsity: 0.9, update: {freq: 5}, param_filter: fc1.weight}");
  EXPECT_EQ(json.required<int64_t>("steps"), 18);
  EXPECT_EQ(json.required<int64_t>("steps_per_epoch"), 6);
  EXPECT_EQ(json.required<int64_t>("numel"), 9550);
  EXPECT_EQ(json.required<int64_t>("final_nnz"), 940 + 12 + 120 + 10);
  const std::vector<Config> parameters = json.at("parameters").items();
  ASSERT_EQ(parameters.size(), 4u);
  std::vector<std::string> keys;
  for (const auto& [key, value] : parameters[0].entries()) keys.push_back(key);
  EXPECT_THAT(
      keys, ElementsAre("parameter", "shape", "algorithm", "chosen_by", "initial_nnz", "final_nnz",
                        "final_sparsity", "layout", "final_layout", "update_steps"));
  EXPECT_EQ(parameters[0].required<std::string>("parameter"), "fc1.weight");
  EXPECT_THAT(parameters[0].required<std::vector<int64_t>>("shape"), ElementsAre(12, 784));
  EXPECT_EQ(parameters[0].required<std::string>("algorithm"), "set");
  EXPECT_EQ(parameters[0].required<std::string>("chosen_by"), "'fc1.weight'");
  EXPECT_EQ(parameters[0].required<int64_t>("initial_nnz"), 940);
  EXPECT_EQ(parameters[0].required<int64_t>("final_nnz"), 940);
  EXPECT_DOUBLE_EQ(parameters[0].required<double>("final_sparsity"), 1.0 - 940.0 / 9408.0);
  EXPECT_THAT(parameters[0].required<std::vector<int64_t>>("update_steps"), ElementsAre(5, 10, 15));
  EXPECT_EQ(parameters[2].required<std::string>("algorithm"), "none");
  EXPECT_EQ(parameters[2].required<int64_t>("final_nnz"), 120);
}

// A model of templates and residuals, which 10 classes take.
constexpr const char* kGraph = R"(
data: {type: glyphs, train_size: 64, test_size: 10}
model:
  define:
    block:
      arguments: {width: null}
      layers:
        - type: residual
          shortcut: {type: linear, name: down, out_features: $width, bias: false}
          layers: [{type: linear, name: fc, out_features: $width}]
        - relu
  layers:
    - flatten
    - {type: block, name: b, repeat: 2, width: 8}
    - type: parallel
      layers: [{type: linear, name: q, out_features: 4}, {type: linear, name: k, out_features: 6}]
optimizer: {type: adam}
sparsity: {sparsity: 0.5, param_filter: "b.*.weight"}
train: {epochs: 1, batch_size: 32, threads: 1}
)";

TEST_F(PlanCommand, PrintsTheExpandedModel) {
  write_text(config(), kGraph);
  const Ended ended = run_lacuna({"plan", config()});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::vector<std::string> lines = lines_of(ended.out);
  ASSERT_GT(lines.size(), 14u);
  EXPECT_THAT(
      std::vector(lines.begin() + 2, lines.begin() + 15),
      ElementsAre(
          "layer type output parameters final nnz inference FLOPs dense training FLOPs dense",
          "flatten1 flatten [784]", "b.0 sequential [8] template: block",
          "b.0.residual1 residual [8] shortcut: linear down",
          "b.0.fc linear [8] 6280 3144 6272 12544 12544 25088",
          "b.0.down linear [8] 6272 3136 6272 12544 18816 37632", "b.0.relu1 relu [8]",
          "b.1 sequential [8] template: block", "b.1.residual1 residual [8] shortcut: identity",
          "b.1.fc linear [8] 72 40 64 128 192 384", "b.1.relu1 relu [8]", "parallel1 parallel [10]",
          "q linear [4] 36 36 64 64 192 192"));
  EXPECT_THAT(ended.out, HasSubstr("\nall "));
}

TEST_F(PlanCommand, WritesTheExpandedModelAsJson) {
  write_text(config(), kGraph);
  const Ended ended = run_lacuna({"plan", config(), "--json"});
  const Config json = parse_yaml(ended.out, "plan");
  for (const char* key : {"dense_inference_flops", "dense_flops"}) {
    EXPECT_EQ(json.required<int64_t>(key), 12544 + 12544 + 128 + 64 + 96);
  }
  for (const char* key : {"inference_flops", "flops"}) {
    EXPECT_EQ(json.required<int64_t>(key), 6272 + 6272 + 64 + 64 + 96);
  }
  EXPECT_EQ(json.required<int64_t>("dense_training_flops"),
            2 * 12544 + 3 * (12544 + 128 + 64 + 96));
  EXPECT_EQ(json.required<int64_t>("training_flops"), 2 * 6272 + 3 * (6272 + 64 + 64 + 96));
  const std::vector<Config> layers = json.at("layers").items();
  ASSERT_EQ(layers.size(), 13u);
  std::vector<std::string> keys;
  for (const auto& [key, value] : layers[2].entries()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("path", "type", "description", "output", "parameters", "final_nnz",
                                "inference_flops", "dense_inference_flops", "training_flops",
                                "dense_training_flops", "flops", "dense_flops"));
  EXPECT_EQ(layers[2].required<std::string>("description"), "shortcut: linear down");
  EXPECT_EQ(layers[3].required<std::string>("path"), "b.0.fc");
  EXPECT_EQ(layers[3].required<std::string>("type"), "linear");
  EXPECT_THAT(layers[3].required<std::vector<int64_t>>("output"), ElementsAre(8));
  EXPECT_EQ(layers[3].required<int64_t>("parameters"), 6280);
  EXPECT_EQ(layers[3].required<int64_t>("final_nnz"), 3144);
  EXPECT_EQ(layers[3].required<int64_t>("dense_flops"), 12544);
  EXPECT_EQ(layers[3].required<int64_t>("flops"), 6272);
}

TEST_F(PlanCommand, WritesThePatternToJsonWhereThereIsOne) {
  const Config json = plan_json(
      "{algorithm: static, pattern: {type: nm, n: 1, m: 4, group: 2}, param_filter: fc1.weight}");
  const std::vector<Config> parameters = json.at("parameters").items();
  EXPECT_EQ(parameters[0].required<std::string>("pattern"), "nm 1:4 g2");
  EXPECT_FALSE(parameters[2].has("pattern"));
}

TEST_F(PlanCommand, ShowsEachPhaseAndADenseModel) {
  const Config phases = plan_json(
      "{phases: [{until: 6, algorithm: static, sparsity: 0.5, param_filter: fc1.weight}, "
      "{until: 12, algorithm: set, sparsity: 0.75, update: {freq: 3}, param_filter: default}, "
      "{algorithm: dense, param_filter: default}]}");
  EXPECT_EQ(phases.required<int64_t>("final_nnz"), 9550);
  std::vector<std::string> entries;
  for (const Config& p : phases.at("parameters").items()) {
    entries.push_back(p.required<std::string>("parameter") + " " +
                      p.required<std::string>("algorithm") + " " + p.at("final_nnz").text());
  }
  EXPECT_THAT(entries, ElementsAre("fc1.weight static 4704", "fc1.weight set 2352",
                                   "fc1.weight dense 9408", "fc1.bias none 12", "fc2.weight set 30",
                                   "fc2.weight dense 120", "fc2.bias none 10"));
  EXPECT_EQ(plan_json("null").required<int64_t>("final_nnz"), 9550);
}

// What it says each parameter will end at is what training ends at.
TEST_F(PlanCommand, ForeseesTheNonzerosOfTheRun) {
  const std::string sparsity =
      "sparsity={algorithm: rigl, density: 0.2, distribution: erk, update: {freq: 2, start: 3}}";
  const Ended ended = run_lacuna({"plan", config(), "--json", "--set", sparsity});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ASSERT_EQ(train({"--set", sparsity}).code, 0);
  EXPECT_EQ(summary(run_dir()).required<int64_t>("nnz"),
            parse_yaml(ended.out, "plan").required<int64_t>("final_nnz"));
}

TEST_F(PlanCommand, ForeseesTheUpdatesInTheMetrics) {
  const std::string sparsity =
      "[{algorithm: set, sparsity: 0.9, update: {freq: 4, stop: 12}, param_filter: fc1.weight}, "
      "{algorithm: rigl, sparsity: 0.5, update: {steps: [0, 3, 17]}, param_filter: fc2.weight}]";
  ASSERT_EQ(train({"--set", "sparsity=" + sparsity}).code, 0);
  std::map<std::string, std::vector<int64_t>> updates;
  for (const Config& event : events(run_dir())) {
    if (event.required<std::string>("split") != "update") continue;
    const auto parameter = event.required<std::string>("parameter");
    updates[parameter].push_back(event.required<int64_t>("step"));
    const bool first = parameter == "fc1.weight";
    EXPECT_EQ(event.required<int64_t>("nnz"), first ? 940 : 60);
    EXPECT_EQ(event.required<int64_t>("dropped"), event.required<int64_t>("grown"));
    EXPECT_DOUBLE_EQ(event.required<double>("target"), first ? 0.9 : 0.5);
  }
  for (const Config& p : plan_json(sparsity).at("parameters").items()) {
    EXPECT_EQ(p.required<std::vector<int64_t>>("update_steps"),
              updates[p.required<std::string>("parameter")]);
  }
  EXPECT_THAT(updates["fc1.weight"], ElementsAre(4, 8));
}

TEST_F(PlanCommand, AndTrainRefuseAFilterThatMatchesNothing) {
  refuses("{sparsity: 0.5, param_filter: fc3.weight}",
          "param_filter 'fc3.weight' matches no parameter; did you mean 'fc1.weight'? (parameters: "
          "fc1.weight, fc1.bias, fc2.weight, fc2.bias)");
  refuses("[{sparsity: 0.5, param_filter: '*'}, {sparsity: 0.5, param_filter: fc1.weight}]",
          "earlier entries have taken all parameters that it matches");
}

TEST_F(PlanCommand, AndTrainRefuseARunWithoutUpdates) {
  refuses("{algorithm: set, sparsity: 0.5, update: {freq: 100}}",
          "set: no update falls within its 18 steps; check update.freq, start and stop");
  refuses(
      "{phases: [{until: 3, algorithm: set, sparsity: 0.5, update: {freq: 4}}, "
      "{algorithm: dense}]}",
      "set: no update falls within its 3 steps");
  refuses("{phases: [{until: 18, algorithm: dense}, {sparsity: 0.5}]}",
          "phases: phase 1 begins at step 18, the run ends at step 18");
}

TEST_F(PlanCommand, AndTrainRefuseASparsityScheduleThatDoesNotEnd) {
  refuses(
      "{algorithm: gmp, update: {freq: 5}, "
      "sparsity: {type: polynomial, init: 0, final: 0.9, start: 0, end: 16}}",
      "gmp: the sparsity schedule (polynomial) ends at step 16, after the last update at step "
      "15: its final value is never reached");
  refuses(
      "[{algorithm: ste, update: {freq: 2, stop: 10}, "
      "sparsity: {type: cosine, init: 0.1, minimum: 0.9, half_period: 10}}]",
      "ste: the sparsity schedule (cosine) ends at step 10, after the last update at step 8");
}

TEST_F(PlanCommand, AndTrainRefuseATargetThatCannotBeReached) {
  refuses("{sparsity: 0.9999, distribution: erk, param_filter: default}",
          "leaves 0 nonzeros for 2 parameters; the largest that can be reached is 0.9997");
}

TEST_F(PlanCommand, AndTrainRefuseADropFractionThatRisesAgain) {
  refuses(
      "{algorithm: rigl, sparsity: 0.5, update: {freq: 4}, "
      "drop_fraction: {type: cosine, init: 0.3, half_period: 12}}",
      "rigl: the cosine drop_fraction rises again after its half_period of 12 steps, but updates "
      "continue until step 16; set half_period to at least 16, or stop the updates earlier");
}

TEST_F(PlanCommand, AndTrainRefuseAnAcDcRunThatEndsDense) {
  refuses("{algorithm: acdc, sparsity: 0.5, update: {freq: 9}}",
          "acdc: 2 updates leave the network dense at the end");
}

}  // namespace
}  // namespace lacuna::plan_command_test
