// `lacuna quantize`: a run in int8 that eval, predict, inspect and plan understand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna::quantize_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kRun = R"(
data: {type: glyphs, train_size: 200, test_size: 60, validation: 20}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 40}
  - relu
  - {type: linear, name: fc2, out_features: 32}
  - gelu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.003}
sparsity: {algorithm: static, sparsity: 0.5, pattern: {type: block, rows: 1, cols: 4}, param_filter: fc2.weight}
train: {epochs: 2, batch_size: 20, threads: 1}
)";

class Quantize : public RunFixture {
 protected:
  Quantize() { write_text(config(), kRun); }
  Ended quantize(const std::string& to, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"quantize", run_dir(), "--run-dir", run_dir(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  void expect_refused(const std::vector<std::string>& more, const std::string& words) const {
    const Ended ended = quantize("refused", more);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(run_dir("refused")));
  }
};

TEST_F(Quantize, MakesARunThatEveryCommandUnderstands) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = quantize("int8", {"--set", "quantize.calibration=64"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fc2.weight"));
  EXPECT_THAT(ended.out, HasSubstr("the quantized model is in"));
  const Config report = load_yaml(run_dir("int8") + "/quantize.json");
  ASSERT_EQ(report.at("layers").items().size(), 1u);
  const Config layer = report.at("layers").items()[0];
  EXPECT_GT(layer.required<double>("relative_error"), 0.0);
  EXPECT_LT(layer.required<double>("relative_error"), 0.001);
  EXPECT_EQ(layer.required<int64_t>("input_zero"), 0);
  EXPECT_LT(report.at("int8").required<int64_t>("bytes"),
            report.at("float32").required<int64_t>("bytes"));

  const Ended evaluated = run_lacuna({"eval", run_dir("int8"), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const Config eval = parse_yaml(evaluated.out, "eval");
  for (const char* precision : {"int8", "float32"}) {
    const Config splits = eval.at("precisions").at(precision).at("splits");
    ASSERT_EQ(splits.items().size(), 2u);
    EXPECT_EQ(splits.items()[1].at("loss").text(),
              report.at(precision).at("splits").items()[1].at("loss").text());
    EXPECT_GT(eval.at("precisions").at(precision).required<double>("examples_per_second"), 0.0);
  }
  EXPECT_EQ(eval.at("splits").items()[1].at("loss").text(),
            report.at("int8").at("splits").items()[1].at("loss").text());
  const Ended before = run_lacuna({"eval", run_dir(), "--json"});
  EXPECT_EQ(parse_yaml(before.out, "eval").at("splits").items()[1].at("loss").text(),
            report.at("float32").at("splits").items()[1].at("loss").text());
  EXPECT_THAT(run_lacuna({"eval", run_dir("int8")}).out, HasSubstr("float32  test"));

  const Ended compared = run_lacuna({"compare", run_dir(), run_dir("int8"), "--json"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  for (const Config& run : parse_yaml(compared.out, "compare").at("runs").items()) {
    EXPECT_EQ(run.required<std::string>("state"), "finished");
    EXPECT_TRUE(run.has("accuracy"));
  }
  const Ended inspected = run_lacuna({"inspect", run_dir("int8"), "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_EQ(parse_yaml(inspected.out, "inspect").at("quantized").items().size(), 1u);
  EXPECT_THAT(run_lacuna({"inspect", run_dir("int8")}).out, HasSubstr("weight scales"));
  EXPECT_FALSE(parse_yaml(run_lacuna({"inspect", run_dir(), "--json"}).out, "i").has("quantized"));
}

#ifndef LACUNA_ONE_INSTRUCTION_SET
TEST_F(Quantize, TellsWhereInt8IsSlow) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("int8", {"--set", "quantize.calibration=64"}).code, 0);
  const auto told = [&](const std::string& run, const char* set) {
    const Ended ended = run_lacuna(
        {"eval", run_dir(run)}, {.in_child = [=] { ::setenv("LACUNA_INSTRUCTION_SET", set, 1); }});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.err;
  };
  const std::string words = "int8 is slow with the instruction set 'baseline'";
  EXPECT_THAT(told("int8", "baseline"), HasSubstr(words));
  EXPECT_THAT(told("run", "baseline"), Not(HasSubstr(words)));
  if (int8_kernels_name() != "plain") {
    EXPECT_THAT(told("int8", active_instruction_set().c_str()), Not(HasSubstr("int8 is slow")));
  }
}
#endif

// As many examples, in batches of the same size.
TEST_F(Quantize, CalibratesByBatches) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("a", {"--set", "quantize.calibration={examples: 64, batch_size: 16}"}).code,
            0);
  ASSERT_EQ(quantize("b", {"--set", "quantize.calibration={batches: 4, batch_size: 16}"}).code, 0);
  EXPECT_EQ(load_yaml(run_dir("a") + "/quantize.json").at("layers").to_json(),
            load_yaml(run_dir("b") + "/quantize.json").at("layers").to_json());
  expect_refused({"--set", "quantize.calibration={batches: 50, batch_size: 16}"},
                 "calibration needs 800 examples, and the training data has 180");
  expect_refused({"--set", "quantize.calibration.batches=50"},
                 "--set quantize.calibration.batches=50: quantize.calibration.batches: calibration "
                 "needs 1000 examples");
}

TEST_F(Quantize, IsTheSameOnAnyNumberOfThreads) {
  ASSERT_EQ(train().code, 0);
  std::vector<std::string> layers;
  for (const std::string threads : {"1", "3"}) {
    ASSERT_EQ(quantize("by" + threads, {"--threads", threads, "--json"}).code, 0);
    layers.push_back(load_yaml(run_dir("by" + threads) + "/quantize.json").at("layers").to_json());
  }
  EXPECT_EQ(layers[0], layers[1]);
}

// The int8 values of the checkpoint, dense, with what a step is worth.
TEST_F(Quantize, IsExportedWithItsScales) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("int8").code, 0);
  const std::string path = folder_ / "int8.safetensors";
  const Ended exported =
      run_lacuna({"export", run_dir("int8"), "--format", "safetensors", "--out", path});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const SafetensorsFile file(path);
  const SafetensorsEntry& weight = file.tensor("fc2.weight");
  EXPECT_EQ(weight.dtype, "I8");
  EXPECT_EQ(weight.shape, (Shape{32, 40}));
  std::vector<std::byte> bytes(32 * 40);
  file.read_bytes(weight, bytes);
  const StateDict state =
      find_checkpoint(run_dir("int8")).read().state.below("quantized").below("fc2.weight");
  std::vector<int8_t> nonzeros;
  for (const std::byte byte : bytes) {
    if (byte != std::byte{0}) nonzeros.push_back(static_cast<int8_t>(byte));
  }
  std::vector<int8_t> stored = state.get<SignedBytes>("values").values;
  std::erase(stored, int8_t{0});
  EXPECT_EQ(nonzeros, stored);
  const Tensor scales = file.read(file.tensor("fc2.weight_scale"));
  EXPECT_EQ(scales.shape(), (Shape{32, 1}));
  EXPECT_EQ(scales.to_vector(), state.get<Tensor>("scales").to_vector());
  EXPECT_EQ(file.tensor("fc2.input_zero_point").dtype, "I32");
  EXPECT_EQ(file.tensor("fc1.weight").dtype, "F32");
  const Ended npz =
      run_lacuna({"export", run_dir("int8"), "--format", "npz", "--out", folder_ / "float32.npz"});
  EXPECT_EQ(npz.code, 0);
  EXPECT_THAT(npz.err, HasSubstr("holds the float32 weights of a quantized run"));
}

TEST_F(Quantize, TakesAFileAndTheRunsOwnSection) {
  ASSERT_EQ(train({"--set", "quantize={algorithm: nearest, activations: {when: dynamic}}"}).code,
            0);
  ASSERT_EQ(quantize("own").code, 0);
  const Config own = load_yaml(run_dir("own") + "/quantize.json");
  EXPECT_EQ(own.required<std::string>("algorithm"), "nearest");
  EXPECT_FALSE(own.at("layers").items()[0].has("input_scale"));
  const std::string file = folder_ / "q.yaml";
  write_text(file, "quantize: {param_filter: '*.weight'}\n");
  ASSERT_EQ(quantize("all", {file}).code, 0);
  const Config all = load_yaml(run_dir("all") + "/quantize.json");
  EXPECT_EQ(all.required<std::string>("algorithm"), "gptq");
  EXPECT_EQ(all.at("layers").items().size(), 3u);
}

// What the run states for one choice does not stand in the way of another one.
TEST_F(Quantize, ChangesChoicesOfTheRunsOwnSection) {
  ASSERT_EQ(train({"--set", "quantize={algorithm: nearest, calibration: 64}"}).code, 0);
  const std::vector<std::vector<std::string>> choices = {
      {"activations.when=dynamic"},
      {"activations.observer=min_max"},
      {"algorithm=gptq", "activations.when=dynamic"},
      {"activations.when=none"},
      {"activations={when: none}"},
      {"activations={when: dynamic}"},
      {"activations.when=dynamic", "activations={when: none}"},
      {"algorithm=gptq", "activations={when: none}"},
      {"algorithm=gptq", "activations.when=none"}};
  for (size_t i = 0; i < choices.size(); ++i) {
    std::vector<std::string> more;
    for (const std::string& choice : choices[i]) {
      more.insert(more.end(), {"--set", "quantize." + choice});
    }
    const Ended ended = quantize("other" + std::to_string(i), more);
    EXPECT_EQ(ended.code, 0) << choices[i][0] << ": " << ended.err;
  }
  expect_refused({"--set", "quantize.activations={when: none}", "--set", "quantize.calibration=8"},
                 "--set quantize.calibration=8: quantize.calibration: nearest with float32");
}

TEST_F(Quantize, LeavesTheRunsSmoothingOutWhereActivationsAreNotRounded) {
  ASSERT_EQ(train({"--set", "quantize={calibration: 64, smooth: 0.5}"}).code, 0);
  ASSERT_EQ(quantize("none", {"--set", "quantize.activations={when: none}"}).code, 0);
  const Config section = load_yaml(run_dir("none") + "/config.yaml").at("quantize");
  EXPECT_EQ(section.required<double>("smooth"), 0.0);
  EXPECT_EQ(section.required<int64_t>("calibration"), 64);  // of gptq
  expect_refused({"--set", "quantize.activations.when=none", "--set", "quantize.smooth=0.3"},
                 "--set quantize.smooth=0.3: quantize.smooth: smoothing makes activations easier");
}

TEST_F(Quantize, IsNotTrainedOn) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("int8").code, 0);
  const Ended resumed = run_lacuna({"train", "--resume", "--run-dir", run_dir("int8")});
  EXPECT_NE(resumed.code, 0);
  EXPECT_THAT(resumed.err, HasSubstr("a quantized model can only be trained with qat"));
  const Ended again = run_lacuna({"quantize", run_dir("int8"), "--run-dir", run_dir("again")});
  EXPECT_NE(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("is quantized already"));
  // Its float32 weights begin another run.
  const std::vector<std::string> more = {"--init-from", run_dir("int8"), "--set", "train.epochs=1"};
  const std::string note = "those of a quantized run, and are trained in float32; with quantize: ";
  const Ended begun = train(more, "more");
  EXPECT_EQ(begun.code, 0);
  EXPECT_THAT(begun.err, HasSubstr(note));
  ASSERT_EQ(quantize("alone", {"--only", "int8"}).code, 0);
  const std::string dequantized = "float32: the run has int8 weights alone";
  EXPECT_THAT(run_lacuna({"eval", run_dir("alone")}).out, HasSubstr(dequantized));
  EXPECT_THAT(run_lacuna({"eval", run_dir("int8")}).out, Not(HasSubstr(dequantized)));
  EXPECT_THAT(train({"--init-from", run_dir("alone")}, "from_alone").err, HasSubstr(note));
  EXPECT_THAT(train({"--init-from", run_dir("int8"), "--set", "quantize.algorithm=qat"}, "qat").err,
              Not(HasSubstr(note)));
  const std::string trains_for_int8 = "this is its float32 model: `lacuna quantize ";
  EXPECT_THAT(run_lacuna({"eval", run_dir("qat")}).err, HasSubstr(trains_for_int8));
  EXPECT_THAT(run_lacuna({"eval", run_dir("int8")}).err, Not(HasSubstr(trains_for_int8)));
  const auto bytes = [&](const std::string& name) {
    const Ended ended = run_lacuna({"inspect", run_dir(name), "--json"});
    return parse_yaml(ended.out, "inspect").required<int64_t>("total_bytes");
  };
  // Both hold the int8 values and scales, and one of them the float32 values too.
  const Config inspected =
      parse_yaml(run_lacuna({"inspect", run_dir("int8"), "--json"}).out, "inspect");
  int64_t float32 = 0;
  for (const Config& layer : inspected.at("quantized").items()) {
    for (const Config& parameter : inspected.at("parameters").items()) {
      if (parameter.at("name").text() != layer.at("parameter").text()) continue;
      float32 += 4 * parameter.required<int64_t>("nnz");
      EXPECT_GT(parameter.required<int64_t>("value_bytes"), 5 * parameter.required<int64_t>("nnz"));
    }
  }
  EXPECT_GT(float32, 0);
  EXPECT_EQ(bytes("int8") - bytes("alone"), float32);
}

TEST_F(Quantize, RefusesBadInput) {
  ASSERT_EQ(train().code, 0);
  expect_refused({"--set", "quantize.param_filter=conv.weight"}, "matches no weight");
  expect_refused({"--set", "quantize.param_filter=conv.weight"},
                 "--set quantize.param_filter=conv.weight: ");
  expect_refused({"--set", "quantize.calibration=5000"}, "--set quantize.calibration=5000: ");
  expect_refused({"--set", "quantize.calibration=7"}, "7 examples are too few to calibrate on");
  expect_refused({"--set", "quantize.calibration=5000"}, "calibration needs 5000 examples");
  expect_refused({"--set", "quantize.calibration={batches: 3, batch_size: 2}"},
                 "6 examples are too few to calibrate on");
  expect_refused({"--set", "data.limit=3"}, "quantize only accepts keys of `quantize`");
  const std::string file = folder_ / "q.yaml";
  write_text(file, "quantize: {}\ntrain: {epochs: 3}\n");
  expect_refused({file}, "q.yaml:2:8: train: quantize only reads the section `quantize`");
  write_text(file, "sparsity: 0.5\n");
  expect_refused({file}, "there is no `quantize` section");
  write_text(file, "quantize: {weights: {bits: 4}}\n");
  expect_refused({file}, "q.yaml:1:28: quantize.weights.bits: expected 8");
}

TEST_F(Quantize, IsPlanned) {
  const Ended planned =
      run_lacuna({"plan", config(), "--json", "--set", "quantize.param_filter=fc2.weight"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const std::vector<Config> rows = parse_yaml(planned.out, "plan").at("quantized_products").items();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[1].required<std::string>("kernel"), HasSubstr("int8 1x4"));
  EXPECT_EQ(rows[1].required<double>("weights_in_group"), 4.0);
  EXPECT_EQ(rows[0].required<std::string>("kernel"), "float32");
  const Ended refused = run_lacuna({"plan", config(), "--set", "quantize.param_filter=fc9.weight"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("matches no weight"));
}

// Patterns whose rows have their inputs in common have a kernel of their own.
TEST_F(Quantize, ComputesRowsOfAPatternTogether) {
  const std::string set = "sparsity={algorithm: static, param_filter: fc2.weight, ";
  const bool is_avx2 = int8_kernels_name() == "avx2";
  for (const auto& [name, keys, kernel] :
       {std::tuple{"nm", "pattern: {type: nm, n: 2, m: 4, group: 8}}", "int8 4x4 gathered "},
        std::tuple{"tiles", "sparsity: 0.5, pattern: {type: block, rows: 16, cols: 4}}",
                   is_avx2 ? "int8 1x4 " : "int8 4x4 "}}) {
    ASSERT_EQ(train({"--set", set + keys}, name).code, 0);
    const std::string int8 = std::string(name) + "_int8";
    const Ended ended = run_lacuna({"quantize", run_dir(name), "--run-dir", run_dir(int8)});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Config report = load_yaml(run_dir(int8) + "/quantize.json");
    const Config product = report.at("products").items()[1];
    EXPECT_THAT(product.required<std::string>("kernel"), HasSubstr(kernel));
    EXPECT_FALSE(product.has("advice"));
    const Config loss = report.at("int8").at("splits").items()[1].at("loss");
    EXPECT_NEAR(loss.as<double>(),
                report.at("float32").at("splits").items()[1].required<double>("loss"), 0.05);
    const Ended evaluated = run_lacuna({"eval", run_dir(int8), "--json"});
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    EXPECT_EQ(parse_yaml(evaluated.out, "eval").at("splits").items()[1].at("loss").text(),
              loss.text());
    const std::string path = folder_ / (int8 + ".safetensors");
    EXPECT_EQ(run_lacuna({"export", run_dir(int8), "--format", "safetensors", "--out", path}).code,
              0);
    EXPECT_EQ(SafetensorsFile(path).tensor("fc2.weight").dtype, "I8");
  }
}

TEST_F(Quantize, SaysThatUngroupedPatternsLeaveGroupsHalfFull) {
  const Ended planned = run_lacuna({"plan", config(), "--set", "quantize={}", "--set",
                                    "sparsity={algorithm: static, param_filter: fc2.weight, "
                                    "pattern: {type: nm, n: 2, m: 4}}"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("fc2.weight runs as int8 1x4"));
  if (int8_kernels_name() == "avx2") {  // 1.1 times as fast
    EXPECT_THAT(planned.out, HasSubstr("about as fast as float32 csr; train with pattern"));
    return;
  }
  EXPECT_THAT(planned.out, HasSubstr("filled to 50 %"));
  EXPECT_THAT(planned.out, HasSubstr("or the same one with group: 8, fill them"));
}

#ifndef LACUNA_ONE_INSTRUCTION_SET
// Weights without a pattern fill a third of their groups; AVX2 is then slower in int8 than in
// float32.
TEST_F(Quantize, RunsAsFloat32WhereInt8IsSlower) {
  const std::vector<std::string> plan = {
      "plan",  config(),
      "--set", "quantize={}",
      "--set", "sparsity={algorithm: static, param_filter: fc2.weight, sparsity: 0.8}"};
  const auto planned_with = [&](const char* set) {
    return run_lacuna(plan, {.in_child = [=] { ::setenv("LACUNA_INSTRUCTION_SET", set, 1); }}).out;
  };
  const std::string slow = planned_with("avx2");
  EXPECT_THAT(slow, HasSubstr("fc2.weight runs as float32 csr of the int8 values: int8 with "));
  EXPECT_THAT(slow, HasSubstr("would be slower; train with pattern {type: block"));
  if (int8_kernels_name().ends_with("vnni")) {
    EXPECT_THAT(run_lacuna(plan).out, HasSubstr("fc2.weight runs as int8 1x4 "));
  }
}
#endif

}  // namespace
}  // namespace lacuna::quantize_test
