// `lacuna shrink`: a smaller run that other commands understand, and training goes on from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "docs/documents.h"
#include "framework/program/runs.h"

namespace lacuna::shrink_test {
namespace {

using testing::HasSubstr;

class Shrink : public RunFixture {
 protected:
  Ended shrink(const std::string& to, const std::vector<std::string>& more,
               const std::string& from = "run") const {
    std::vector<std::string> arguments{"shrink", run_dir(from), "--run-dir", run_dir(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  void expect_refused(const std::vector<std::string>& more, int code, const std::string& words,
                      const std::string& from = "run") {
    const Ended ended = shrink("refused", more, from);
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(run_dir("refused")));
  }
  StateDict state(const std::string& name) const {
    return find_checkpoint(run_dir(name)).read().state;
  }
  // Two smaller runs of one, of which "cut" loses its last checkpoint and continues.
  void expect_resumed(const std::string& from, const std::vector<std::string>& more) const {
    const auto resume = [&](const std::string& name) {
      const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir(name)});
      ASSERT_EQ(ended.code, 0) << ended.err;
    };
    for (const char* name : {"whole", "cut"}) {
      const Ended ended = shrink(name, more, from);
      ASSERT_EQ(ended.code, 0) << ended.err;
      resume(name);
    }
    std::filesystem::remove(checkpoint(18, "cut"));  // and once more from step 16
    std::filesystem::remove(run_dir("cut") + "/summary.json");
    resume("cut");
    EXPECT_EQ(differences(state("whole"), state("cut")), std::vector<std::string>{});
    EXPECT_EQ(run_lacuna({"eval", run_dir("cut")}).code, 0);
  }
};

TEST_F(Shrink, MakesARunOfASmallerModelWithItsOptimizersStates) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = shrink("small", {"--to", "flops=0.5"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("the smaller model is in " + run_dir("small")));
  const Config report = load_yaml(run_dir("small") + "/shrink.json");
  const Config row = report.at("rows").items().front();
  EXPECT_EQ(row.required<int64_t>("units"), 12);
  EXPECT_EQ(row.required<int64_t>("kept"), 6);
  const Config costs = report.at("costs");
  EXPECT_DOUBLE_EQ(costs.at("flops").required<double>("part"), 0.5);
  EXPECT_DOUBLE_EQ(costs.at("bytes").required<double>("after"),
                   4.0 * costs.at("parameters").required<double>("after"));
  EXPECT_THAT(ended.out, HasSubstr("\nbytes "));
  EXPECT_TRUE(report.at("messages").items().empty());
  const Config layers = load_yaml(run_dir("small") + "/config.yaml").at("model").at("layers");
  EXPECT_EQ(layers.items()[1].required<int64_t>("out_features"), 6);
  EXPECT_EQ(layers.items()[4].required<int64_t>("in_features"), 6);

  // Weights, their moments and the bias are those of six of the units.
  const StateDict whole = state("run"), small = state("small");
  EXPECT_EQ(small.get<int64_t>("optimizer/step"), 0);
  EXPECT_EQ(small.get<int64_t>("optimizer/earlier_steps"), whole.get<int64_t>("optimizer/step"));
  const auto& moments = whole.get<Tensor>("optimizer/fc1.weight/exp_avg");
  const auto& left = small.get<Tensor>("optimizer/fc1.weight/exp_avg");
  const auto& bias = whole.get<Tensor>("model/fc1.bias");
  const auto& left_bias = small.get<Tensor>("model/fc1.bias");
  const auto& out = whole.get<Tensor>("optimizer/fc2.weight/exp_avg_sq");
  const auto& left_out = small.get<Tensor>("optimizer/fc2.weight/exp_avg_sq");
  const int64_t inputs = moments.shape()[1];
  int64_t next = 0;
  for (int64_t unit = 0; unit < 12 && next < 6; ++unit) {
    if (bias.data()[unit] != left_bias.data()[next]) continue;
    for (int64_t i = 0; i < inputs; ++i) {
      ASSERT_EQ(moments.data()[unit * inputs + i], left.data()[next * inputs + i]);
    }
    for (int64_t r = 0; r < 10; ++r) {
      ASSERT_EQ(out.data()[r * 12 + unit], left_out.data()[r * 6 + next]);
    }
    ++next;
  }
  EXPECT_EQ(next, 6);
  EXPECT_EQ(small.get<int64_t>("optimizer/step"), 0);
  EXPECT_EQ(small.get<int64_t>("optimizer/fc1.weight/step"), 18);
}

TEST_F(Shrink, IsTrainedOnAndResumedAsAnyRun) {
  ASSERT_EQ(train().code, 0);
  expect_resumed(
      "run", {"--method", "saliency", "--to", "parameters=0.6", "--set", "shrink.calibration=40"});
  const Ended exported =
      run_lacuna({"export", run_dir("cut"), "--format", "onnx", "--out", folder_ / "cut.onnx"});
  EXPECT_EQ(exported.code, 0) << exported.err;
}

TEST_F(Shrink, IsResumedWithoutItsDeadUnits) {
  const std::string sparsity =
      "sparsity={algorithm: srigl, sparsity: 0.95, min_salient: 0.9, update: {freq: 3}, layout: "
      "csr}";
  ASSERT_EQ(train({"--set", sparsity}, "dead").code, 0);
  expect_resumed("dead", {"--method", "dead", "--set", "shrink.calibration=40"});
  const Config row = load_yaml(run_dir("cut") + "/shrink.json").at("rows").items().front();
  EXPECT_LT(row.required<int64_t>("kept"), row.required<int64_t>("units"));
}

// However the section states a constant sparsity.
TEST_F(Shrink, KeepsMasksAndRemovesDeadUnits) {
  const std::string rest = "min_salient: 0.9, update: {freq: 3}}";
  const std::vector<std::string> sections{
      "{algorithm: srigl, sparsity: 0.95, " + rest,
      "{algorithm: srigl, schedule: {type: constant, value: 0.95}, " + rest,
      "{algorithm: srigl, density: 0.05, " + rest,
      "[{algorithm: srigl, param_filter: fc1.weight, sparsity: 0.95, " + rest + "]"};
  for (size_t i = 0; i < sections.size(); ++i) {
    const std::string dead = "dead" + std::to_string(i), living = "living" + std::to_string(i);
    ASSERT_EQ(train({"--set", "sparsity=" + sections[i]}, dead).code, 0);
    const Ended ended = shrink(living, {"--method", "dead"}, dead);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Config report = load_yaml(run_dir(living) + "/shrink.json");
    const Config row = report.at("rows").items().front();
    EXPECT_LT(row.required<int64_t>("kept"), 12);
    // The rows that are left have more nonzeros than a sparsity of 0.95 would leave them.
    EXPECT_THAT(ended.out, testing::ContainsRegex("are removed: fc1.weight 0.[0-9]* .was 0.950"));
    const auto nonzeros = [&] {
      const auto& mask = state(living).get<ByteArray>("model/fc1.weight_mask");
      return std::count(mask.values.begin(), mask.values.end(), 1);
    };
    const auto before = nonzeros();
    const Ended on = run_lacuna({"train", "--resume", "--run-dir", run_dir(living)});
    EXPECT_EQ(on.code, 0) << on.err;
    EXPECT_GT(static_cast<double>(nonzeros()), 0.9 * static_cast<double>(before)) << sections[i];
  }
}

TEST_F(Shrink, KeepsCountsAtMultiples) {
  const std::string model =
      "model=[flatten, {type: linear, name: fc1, out_features: 40}, relu, {type: linear, name: "
      "fc2, out_features: 10}]";
  ASSERT_EQ(train({"--set", model}).code, 0);
  const auto kept = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--to", "flops=0.5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = shrink(name, arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    const Config row = load_yaml(run_dir(name) + "/shrink.json").at("rows").items().front();
    return std::pair(row.required<int64_t>("kept"), row.required<int64_t>("round_to"));
  };
  EXPECT_EQ(kept("any", {"--round-to", "1"}), std::pair(int64_t{20}, int64_t{1}));
  // 16 would be 80 % of the budget.
  EXPECT_EQ(kept("auto", {}), std::pair(int64_t{20}, int64_t{4}));
  EXPECT_EQ(kept("eight", {"--set", "shrink.round_to=8"}), std::pair(int64_t{16}, int64_t{8}));
  const Config report = load_yaml(run_dir("eight") + "/shrink.json");
  EXPECT_THAT(report.at("messages").items().front().text(),
              HasSubstr("0.4 of the flops is left, although 0.5 was allowed, because counts are "
                        "multiples of 8; round_to: auto comes closer"));
  expect_refused({"--to", "flops=0.5", "--round-to", "32"}, 2,
                 "flops of 0.5 cannot be reached: 0.8 remains even if every layer keeps only the "
                 "fraction keep_at_least (0.1), and counts are multiples of 32 (round_to)");
  expect_refused({"--to", "flops=0.5", "--round-to", "some"}, 2, "auto, or a positive integer");
  expect_refused({"--method", "dead", "--round-to", "8"}, 2, "removes all that is dead");
  for (const std::string key : {"shares=uniform", "keep_at_least=0.5"}) {
    expect_refused({"--method", "dead", "--set", "shrink." + key}, 2, "removes all that is dead");
  }
  expect_refused({"--method", "dead", "--set", "shrink.layers=nothing"}, 2,
                 "'nothing' matches no layer with removable units");
}

TEST_F(Shrink, ByErrorLosesLessThanByMagnitude) {
  ASSERT_EQ(train({"--set", "train.epochs=40"}).code, 0);
  const auto loss = [&](const std::string& method) {
    const Ended ended =
        shrink(method, {"--method", method, "--to", "flops=0.6", "--set", "shrink.calibration=90"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return load_yaml(run_dir(method) + "/shrink.json").at("after").required<double>("loss");
  };
  EXPECT_LT(loss("error"), loss("magnitude"));
}

TEST_F(Shrink, ChangesOneValueOfASectionOfTheRun) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = shrink("small", {"--to", "flops=0.5", "--set", "optimizer.lr=0.125"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config optimizer = load_yaml(run_dir("small") + "/config.yaml").at("optimizer"),
               before = load_yaml(run_dir() + "/config.yaml").at("optimizer");
  EXPECT_EQ(optimizer.required<double>("lr"), 0.125);
  EXPECT_EQ(optimizer.required<std::string>("type"), before.required<std::string>("type"));
}

constexpr const char* kTwoHiddenLayers =
    "model=[flatten, {type: linear, name: fc1, out_features: 16}, relu, {type: linear, name: fc2, "
    "out_features: 16}, relu, {type: linear, name: fc3, out_features: 10}]";

std::string patterned(const std::string& pattern) {
  return "sparsity={algorithm: static, sparsity: 0.5, param_filter: fc2.weight, pattern: " +
         pattern + "}";
}

TEST_F(Shrink, AutoKeepsWhatPatternsNeed) {
  for (const auto& [name, pattern, why] : std::vector<std::array<std::string, 3>>{
           {"nm", "{type: nm, n: 2, m: 4}", "its input dimension"},
           {"blocks", "{type: block, rows: 4, cols: 4}", "its output dimension"}}) {
    ASSERT_EQ(train({"--set", kTwoHiddenLayers, "--set", patterned(pattern)}, name).code, 0);
    const Ended ended = shrink(name + "_small", {"--to", "flops=0.35"}, name);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const std::vector<Config> rows =
        load_yaml(run_dir(name + "_small") + "/shrink.json").at("rows").items();
    EXPECT_EQ(rows[0].required<int64_t>("round_to") % 4, 0) << name;  // inputs of fc2
    EXPECT_EQ(rows[0].required<int64_t>("kept") % 4, 0) << name;
    if (name == "blocks") {  // and outputs
      EXPECT_EQ(rows[1].required<int64_t>("kept") % 4, 0);
    }
    const Ended on = run_lacuna({"train", "--resume", "--run-dir", run_dir(name + "_small")});
    EXPECT_EQ(on.code, 0) << on.err;
    expect_refused({"--to", "flops=0.35", "--round-to", "1"}, 2, why, name);
  }
}

TEST_F(Shrink, SaysWhereACutBreaksAPattern) {
  ASSERT_EQ(train({"--set", kTwoHiddenLayers, "--set", patterned("{type: nm, n: 2, m: 4}")}).code,
            0);
  const Ended ended = shrink("small", {"--to", "flops=0.5"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fc2.weight no longer has the pattern 2:4"));
  const StateDict before = state("small");
  const Ended on = run_lacuna({"train", "--resume", "--run-dir", run_dir("small")});
  ASSERT_EQ(on.code, 0) << on.err;
  EXPECT_EQ(state("small").get<ByteArray>("model/fc2.weight_mask"),
            before.get<ByteArray>("model/fc2.weight_mask"));
}

// Masks that move get their pattern back, and the nonzeros that are left stay.
TEST_F(Shrink, MasksThatMoveGetTheirPatternBack) {
  const std::string sparsity =
      "sparsity={algorithm: rigl, sparsity: 0.75, param_filter: fc2.weight, update: {freq: 1}, "
      "pattern: {type: block, rows: 4, cols: 4}}";
  ASSERT_EQ(train({"--set", kTwoHiddenLayers, "--set", sparsity}).code, 0);
  const Ended ended = shrink("small", {"--to", "flops=0.35", "--set", "shrink.layers=[fc1, fc2]"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fc2.weight no longer has the pattern"));
  const Ended on = run_lacuna({"train", "--resume", "--run-dir", run_dir("small")});
  ASSERT_EQ(on.code, 0) << on.err;
  const StateDict weight = state("small").below("model/fc2.weight");
  const auto columns = weight.get<std::vector<uint32_t>>("indices");
  const auto begins = weight.get<std::vector<int64_t>>("indptr");
  const auto row = [&](size_t r) {
    return std::vector<uint32_t>(columns.begin() + begins[r], columns.begin() + begins[r + 1]);
  };
  for (size_t r = 0; r + 1 < begins.size(); ++r) {
    EXPECT_EQ(row(r), row(r / 4 * 4)) << r;
    for (size_t i = 0; i < row(r).size(); ++i) EXPECT_EQ(row(r)[i] % 4, i % 4) << r;
  }
}

TEST_F(Shrink, KeepsTheNonzerosThatAreLeft) {
  ASSERT_EQ(train({"--set", kTwoHiddenLayers, "--set",
                   "sparsity={algorithm: set, sparsity: 0.83, update: {freq: 2}}"})
                .code,
            0);
  const auto nonzeros = [&] {
    const std::vector<uint8_t> kept = state("small").get<ByteArray>("model/fc1.weight_mask").values;
    return std::accumulate(kept.begin(), kept.end(), int64_t{0});
  };
  ASSERT_EQ(shrink("small", {"--to", "parameters=0.6"}).code, 0);
  const int64_t before = nonzeros();
  ASSERT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir("small")}).code, 0);
  EXPECT_EQ(nonzeros(), before);
}

// Of any machine, at any load: what is reported meets the budget, or the least is named.
TEST_F(Shrink, MeetsABudgetOfTimeOrNamesTheLeast) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = shrink("faster", {"--to", "time=0.9", "--round-to", "6"});
  if (ended.code == 0) {
    const Config report = load_yaml(run_dir("faster") + "/shrink.json");
    const Config seconds = report.at("costs").at("seconds");
    EXPECT_GT(seconds.required<double>("before"), 0.0);
    EXPECT_LE(seconds.required<double>("part"), 0.9);
    EXPECT_EQ(report.at("rows").items().front().required<int64_t>("kept"), 6);
  } else {
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.err,
                testing::ContainsRegex("time of 0.9 cannot be reached: [0-9.]+ remains"));
    EXPECT_FALSE(std::filesystem::exists(run_dir("faster")));
  }
  const Ended whole = shrink("whole", {"--to", "time=1"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const Config report = load_yaml(run_dir("whole") + "/shrink.json");
  EXPECT_EQ(report.at("costs").at("seconds").required<double>("part"), 1.0);
  EXPECT_EQ(report.at("rows").items().front().required<int64_t>("kept"), 12);
  expect_refused({"--to", "time=0.5", "--set", "optimizer.lr=1.0e+30"}, 2,
                 "a budget of time needs steps that can be timed, but the loss of this model is "
                 "not finite");
}

TEST_F(Shrink, LearnsFromTheNetworkItWasMadeFrom) {
  ASSERT_EQ(train({"--set", "loss={type: cross_entropy, label_smoothing: 0.1}"}).code, 0);
  const auto loss = [&](const std::string& name) {
    return load_yaml(run_dir(name) + "/config.yaml").at("loss");
  };
  ASSERT_EQ(shrink("part", {"--to", "flops=0.5", "--set", "loss.type=distillation"}).code, 0);
  EXPECT_EQ(loss("part").required<std::string>("teacher"), checkpoint(18));
  EXPECT_EQ(loss("part").required<double>("label_smoothing"), 0.1);  // as the run has it
  ASSERT_EQ(shrink("name", {"--to", "flops=0.5", "--set", "loss=distillation"}).code, 0);
  EXPECT_EQ(loss("name").required<std::string>("teacher"), checkpoint(18));
  ASSERT_EQ(train({}, "other").code, 0);
  const std::string other = "loss={type: distillation, teacher: " + run_dir("other") + "}";
  ASSERT_EQ(shrink("given", {"--to", "flops=0.5", "--set", other}).code, 0);
  EXPECT_EQ(loss("given").required<std::string>("teacher"), run_dir("other"));
  for (const char* name : {"part", "name", "given"}) {
    const Ended on = run_lacuna({"train", "--resume", "--run-dir", run_dir(name)});
    EXPECT_EQ(on.code, 0) << on.err;
  }
}

// The blocks of docs/guides/shrinking.md, unchanged except for the length of the training.
TEST_F(Shrink, RunsTheConfigurationsOfItsGuide) {
  std::filesystem::create_directory(run_dir("runs"));
  ASSERT_EQ(train({}, "runs/dense").code, 0);
  int shrunk = 0, trained = 0;
  for (const auto& block : documents::read_blocks("docs/guides/shrinking.md", "yaml")) {
    const std::string name = "runs/" + std::to_string(block.line), file = run_dir(name) + ".yaml";
    const bool is_shrink = parse_yaml(block.text, file).has("shrink");
    write_text(file, is_shrink ? block.text : kTinyRun + block.text);
    const std::vector<std::string> arguments =
        is_shrink ? std::vector<std::string>{"shrink", "runs/dense", file}
                  : std::vector<std::string>{"train", file};
    const auto run = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
      words.insert(words.end(), more.begin(), more.end());
      const Ended ended = run_lacuna(words, {.folder = folder_.path()});
      EXPECT_EQ(ended.code, 0) << "line " << block.line << ": " << ended.err;
    };
    run(arguments, {"--set", "train.epochs=1", "--run-dir", name});
    if (is_shrink) run({"train", "--resume", "--run-dir", name}, {});
    EXPECT_TRUE(std::filesystem::exists(run_dir(name) + "/summary.json"));
    ++(is_shrink ? shrunk : trained);
  }
  EXPECT_GE(shrunk, 1);
  EXPECT_GE(trained, 1);
}

TEST_F(Shrink, RefusesWhatCannotBeBeforeAnythingIsWritten) {
  ASSERT_EQ(train().code, 0);
  expect_refused({}, 2, "shrink needs --to flops=F, or a CONFIG file");
  expect_refused({"--to", "half"}, 2, "--to half: give what remains, as in --to flops=0.5");
  expect_refused({"--to", "bytes=0.5"}, 2, "there is no budget 'bytes'");
  expect_refused({"--to", "flops=1.5"}, 2, "a number above 0 and up to 1");
  expect_refused({"--to", "flops=0.5", "--method", "best"}, 2,
                 "expected magnitude, saliency, error, dead");
  expect_refused(
      {"--to", "flops=0.01"}, 2,
      "flops of 0.01 cannot be reached: 0.167 remains even if every layer keeps only the "
      "fraction keep_at_least (0.1)");
  expect_refused({"--to", "flops=0.5", "--set", "shrink.layers=fc2"}, 2,
                 "no unit of layer 'fc2' can be removed: it is an output of the model");
  expect_refused({"--to", "flops=0.5", "--set", "shrink.layers=[]"}, 2,
                 "shrink.layers: expected at least one glob");
  expect_refused({"--to", "flops=0.5", "--set", "shrink.layers=fc9"}, 2,
                 "'fc9' matches no layer with removable units");
  expect_refused({"--method", "dead", "--to", "flops=0.5"}, 2, "leave it out");
  expect_refused({"--method", "dead", "--set", "shrink.calibration.examples=1000"}, 2,
                 ": shrink.calibration.examples: calibration needs 1000 examples");
  for (const char* method : {"saliency", "error"}) {
    expect_refused({"--to", "flops=0.5", "--method", method, "--set", "shrink.calibration=1000"}, 2,
                   "--set shrink.calibration=1000: shrink.calibration: calibration needs 1000 "
                   "examples, and the training data has 90; give at most that many");
  }
  expect_refused({"--to", "flops=0.5", "--set", "shrink.steps=3"}, 2, "shrink.steps");
  expect_refused({"--to", "flops=0.5", "--set", "model=[flatten, linear]"}, 2,
                 "model: the model is the run's; leave it out");
  write_text(folder_ / "small.yaml", "shrink: {to: {flops: 0.5}}\nmodel: [flatten, linear]\n");
  expect_refused({folder_ / "small.yaml"}, 2, "small.yaml:2:8: model: the model is the run's");
  const char* widths = "parametrization={type: sparse_mup, base_width: 6}";
  ASSERT_EQ(train({"--set", widths}, "widths").code, 0);
  expect_refused({"--to", "flops=0.5"}, 2, "learning rates depend on the width", "widths");
  ASSERT_EQ(run_lacuna({"quantize", run_dir(), "--run-dir", run_dir("int8"), "--set",
                        "quantize={param_filter: '*.weight'}"})
                .code,
            0);
  expect_refused({"--to", "flops=0.5"}, 2,
                 "is quantized; shrink the run that it was made from, and quantize the result",
                 "int8");
}

}  // namespace
}  // namespace lacuna::shrink_test
