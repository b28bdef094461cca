// Ways to int8 beside `lacuna quantize` of weights as they are: pruned at once, smoothed, trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "framework/program/quantize/quantized_runs.h"

namespace lacuna::quantize_methods_test {
namespace {

using testing::HasSubstr;

constexpr const char* kMlp = R"(
data: {type: glyphs, train_size: 400, test_size: 200, validation: 40}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 48}
  - relu
  - {type: linear, name: fc2, out_features: 32}
  - relu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.003}
train: {epochs: 4, batch_size: 20, threads: 1}
)";

class QuantizeMethods : public QuantizedRunFixture {
 protected:
  QuantizeMethods() { write_text(config(), kMlp); }
  Ended prune(const std::string& yaml, const std::string& to) const {
    const std::string file = folder_ / (to + ".yaml");
    write_text(file, yaml);
    return run_lacuna({"prune", run_dir(), file, "--run-dir", run_dir(to)});
  }
};

constexpr const char* kBoth =
    "sparsity: {algorithm: ALGORITHM, sparsity: 0.8, param_filter: [fc1.weight, fc2.weight]}\n"
    "quantize: {param_filter: '*.weight', calibration: 200}\n";

std::string both(const std::string& algorithm) {
  std::string yaml = kBoth;
  yaml.replace(yaml.find("ALGORITHM"), 9, algorithm);
  return yaml;
}

TEST_F(QuantizeMethods, PruneTakesMaskAndGridAtOnce) {
  ASSERT_EQ(train().code, 0);
  for (const std::string algorithm : {"sparsegpt", "admm, least_squares: true", "magnitude"}) {
    const std::string name = algorithm.substr(0, 4);
    const Ended ended = prune(both(algorithm), name);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Config pruned = load_yaml(run_dir(name) + "/prune.json");
    EXPECT_EQ(pruned.at("quantized").at("layers").items().size(), 3u);
    for (const Config& row : pruned.at("rows").items()) {
      EXPECT_NEAR(row.required<double>("sparsity"), 0.8, 0.001);
    }
    // What eval computes is what was reported, and the float32 model is the multiples of scales.
    EXPECT_EQ(losses(name).back(),
              report(name).at("int8").at("splits").items().back().at("loss").text());
    const StateDict state = find_checkpoint(run_dir(name)).read().state;
    EXPECT_TRUE(state.below("optimizer").empty());
    const StateDict layer = state.below("quantized").below("fc2.weight");
    EXPECT_NEAR(static_cast<double>(layer.get<SignedBytes>("values").values.size()), 307.0, 1.0);
    EXPECT_NEAR(loss(report(name), "int8"), loss(report(name), "float32"),
                0.05 * loss(report(name), "float32"));
  }
  const Ended resumed = run_lacuna({"train", "--resume", "--run-dir", run_dir("spar")});
  EXPECT_NE(resumed.code, 0);
  EXPECT_THAT(resumed.err, HasSubstr("a quantized model can only be trained with qat"));
}

TEST_F(QuantizeMethods, PruneRefusesWhatItDoesNotDo) {
  ASSERT_EQ(train().code, 0);
  for (const auto& [section, words] : std::vector<std::pair<std::string, std::string>>{
           {"{algorithm: qat}", "prune does not train"},
           {"{smooth: 0.5}", "prune does not smooth"},
           {"{param_filter: fc9.weight}", "matches no weight"}}) {
    const Ended ended =
        prune("sparsity: {algorithm: magnitude, sparsity: 0.5}\nquantize: " + section + "\n", "no");
    EXPECT_EQ(ended.code, 2) << section;
    EXPECT_THAT(ended.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(run_dir("no")));
  }
}

TEST_F(QuantizeMethods, OnlyInt8LeavesTheFloatsOut) {
  for (const std::string sparsity : {"null", "{algorithm: static, sparsity: 0.8, layout: csr}",
                                     "{algorithm: static, sparsity: 0.5, layout: masked}"}) {
    const std::string set = "sparsity=" + sparsity,
                      name = "a" + sparsity.substr(0, 1) + sparsity.substr(sparsity.size() - 4, 3);
    ASSERT_EQ(train({"--set", set}, name).code, 0);
    ASSERT_EQ(quantize(name, name + "both").code, 0);
    const Ended ended = quantize(name, name + "int8", {"--only", "int8"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const StateDict state = find_checkpoint(run_dir(name + "int8")).read().state;
    EXPECT_FALSE(state.contains("model/fc2.weight"));
    EXPECT_FALSE(state.contains("model/fc2.weight/values"));
    EXPECT_EQ(losses(name + "int8"), losses(name + "both"));
    EXPECT_EQ(run_lacuna({"inspect", run_dir(name + "int8")}).code, 0);
    const std::string path = folder_ / (name + ".safetensors");
    EXPECT_EQ(
        run_lacuna({"export", run_dir(name + "int8"), "--format", "safetensors", "--out", path})
            .code,
        0);
    EXPECT_EQ(
        train({"--init-from", run_dir(name + "int8"), "--set", "train.epochs=1", "--set", set},
              name + "more")
            .code,
        0);
  }
  const Ended wrong = quantize("anull", "wrong", {"--only", "float32"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--only takes int8"));
}

// A new folder is asked for, and no run is to be gone on with.
TEST_F(QuantizeMethods, AFolderInUseIsNotToBeResumed) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = quantize("run", "run");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("holds a run already; choose another folder with --run-dir"));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("--resume")));
}

TEST_F(QuantizeMethods, ActivationsByMse) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("run", "mse", {"--set", "quantize.activations={observer: mse}"}).code, 0);
  ASSERT_EQ(quantize("run", "max", {"--set", "quantize.activations={observer: min_max}"}).code, 0);
  const auto scale = [&](const std::string& run) {
    return report(run).at("layers").items()[0].required<double>("input_scale");
  };
  EXPECT_LT(scale("mse"), scale("max"));
}

TEST_F(QuantizeMethods, SmoothNeedsANormBefore) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = quantize("run", "smooth", {"--set", "quantize.smooth=0.5"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("none precedes fc2.weight; leave `smooth` out"));
}

TEST_F(QuantizeMethods, SmoothKeepsWhatTheModelComputes) {
  write_text(config(), R"(
data: {type: glyphs, train_size: 400, test_size: 200, validation: 40}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 48}
  - {type: layer_norm, name: norm}
  - {type: linear, name: fc2, out_features: 32}
  - relu
  - {type: linear, name: fc3, out_features: 32}
  - relu
  - {type: linear, name: fc4, out_features: 10}
optimizer: {type: adam, lr: 0.003}
train: {epochs: 2, batch_size: 20, threads: 1}
)");
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("run", "plain").code, 0);
  const Ended ended = quantize("run", "smooth", {"--set", "quantize.smooth=0.5"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("smooth: no norm precedes fc3.weight"));
  EXPECT_NEAR(loss(report("smooth"), "float32"), loss(report("plain"), "float32"), 1e-5);
  const auto model = [&](const char* run, const char* name) {
    return find_checkpoint(run_dir(run)).read().state.get<Tensor>(name).to_vector();
  };
  EXPECT_NE(model("smooth", "model/norm.weight"), model("plain", "model/norm.weight"));
  EXPECT_EQ(model("smooth", "model/fc3.weight"), model("plain", "model/fc3.weight"));
  EXPECT_NEAR(loss(report("smooth"), "int8"), loss(report("smooth"), "float32"), 0.02);
}

// With coarse grids.
constexpr const char* kCoarse =
    "quantize={algorithm: ALGORITHM, param_filter: '*.weight', weights: {clip: max}, "
    "activations: {observer: min_max}, calibration: 200}";

std::string coarse(const std::string& algorithm) {
  std::string text = kCoarse;
  text.replace(text.find("ALGORITHM"), 9, algorithm);
  return text;
}

TEST_F(QuantizeMethods, QatTrainsOnTheGridsThatQuantizeTakes) {
  ASSERT_EQ(train().code, 0);
  const Ended trained = train({"--init-from", run_dir(), "--set", coarse("qat"), "--set",
                               "train.epochs=2", "--set", "optimizer.lr=0.0003"},
                              "qat");
  ASSERT_EQ(trained.code, 0) << trained.err;
  ASSERT_EQ(quantize("qat", "int8", {"--last"}).code, 0);
  EXPECT_EQ(report("int8").required<std::string>("algorithm"), "qat");
  // The last evaluation of the training was that of the model on its grids.
  const double on_grids = summary(run_dir("qat")).required<double>("test_loss");
  EXPECT_NEAR(loss(report("int8"), "int8"), on_grids, 1e-3 * on_grids);
  const StateDict state = find_checkpoint(run_dir("qat")).read().state.below("qat");
  EXPECT_EQ(state.get<Tensor>("fc1.weight/scales").to_vector(),
            find_checkpoint(run_dir("int8"))
                .read()
                .state.below("quantized")
                .get<Tensor>("fc1.weight/scales")
                .to_vector());
}

// A table in which one number is large now and then, so that the hidden layers' grids by min_max
// are coarse for all the others: training on them wins back more than half of what is lost.
TEST_F(QuantizeMethods, QatRecoversHalfOfWhatStaticLoses) {
  uint32_t state = 12345;
  const auto draw = [&] {
    state = (state * 1103515245u + 12345u) & 0x7fffffffu;
    return static_cast<double>(state) / 2147483648.0;
  };
  for (const auto& [name, rows] : {std::pair("train.csv", 600), std::pair("test.csv", 300)}) {
    std::string text;
    for (int row = 0; row < rows; ++row) {
      double x[7];
      for (int i = 0; i < 6; ++i) x[i] = 2.0 * draw() - 1.0;
      x[6] = draw() < 0.02 ? 1000.0 : draw();
      for (const double v : x) text += std::to_string(v) + ",";
      text += x[0] + x[1] * x[2] > 0.3 * x[3] ? "1\n" : "0\n";
    }
    write_text(folder_ / name, text);
  }
  write_text(config(), "data: {type: csv, header: false, train: " + (folder_ / "train.csv") +
                           ", test: " + (folder_ / "test.csv") + R"(}
model:
  - {type: linear, name: fc1, out_features: 32}
  - relu
  - {type: linear, name: fc2, out_features: 32}
  - relu
  - {type: linear, name: fc3, out_features: 2}
optimizer: {type: adam, lr: 0.003}
train: {epochs: 20, batch_size: 20, threads: 1}
)");
  ASSERT_EQ(train().code, 0);
  const std::string rest =
      "param_filter: [fc2.weight, fc3.weight], activations: {observer: min_max}, calibration: 300}";
  ASSERT_EQ(quantize("run", "static", {"--set", "quantize={algorithm: nearest, " + rest}).code, 0);
  const double before = loss(report("static"), "float32"),
               lost = loss(report("static"), "int8") - before;
  EXPECT_GT(lost, 0.05);
  for (const std::string scales : {"observed", "learned"}) {
    ASSERT_EQ(train({"--init-from", run_dir(), "--set",
                     "quantize={algorithm: qat, scales: " + scales + ", " + rest, "--set",
                     "train.epochs=15"},
                    scales)
                  .code,
              0);
    ASSERT_EQ(quantize(scales, "int8_" + scales).code, 0);
    EXPECT_LT(loss(report("int8_" + scales), "int8") - before, 0.5 * lost) << scales;
  }
}

TEST_F(QuantizeMethods, QatResumesBitForBit) {
  const std::vector<std::string> whole = {
      "--set", coarse("qat"), "--set", "train.epochs=3", "--set", "quantize.start_epoch=1"};
  ASSERT_EQ(train(whole, "whole").code, 0);
  std::vector<std::string> half = whole;
  half[3] = "train.epochs=2";
  ASSERT_EQ(train(half, "half").code, 0);
  ASSERT_EQ(
      run_lacuna({"train", "--resume", "--run-dir", run_dir("half"), "--set", "train.epochs=3"})
          .code,
      0);
  const StateDict once = find_checkpoint(run_dir("whole")).read().state,
                  twice = find_checkpoint(run_dir("half")).read().state;
  EXPECT_THAT(differences(once.below("model"), twice.below("model")), testing::IsEmpty());
  EXPECT_THAT(differences(once.below("qat"), twice.below("qat")), testing::IsEmpty());
}

TEST_F(QuantizeMethods, QatLearnsFromTheFloat32Run) {
  ASSERT_EQ(train().code, 0);
  const Ended trained =
      train({"--init-from", run_dir(), "--set", coarse("qat"), "--set", "train.epochs=1", "--set",
             "loss={type: distillation, teacher: " + run_dir() + "}"},
            "taught");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(quantize("taught", "int8").code, 0);
}

TEST_F(QuantizeMethods, QatIsRefusedOfARunThatWasNotTrainedSo) {
  ASSERT_EQ(train().code, 0);
  const Ended ended = quantize("run", "int8", {"--set", "quantize.algorithm=qat"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("has not: train with it first"));
  const Ended late = train({"--set", coarse("qat"), "--set", "quantize.start_epoch=9"}, "late");
  EXPECT_EQ(late.code, 2);
  EXPECT_THAT(late.err, HasSubstr("begin earlier, or train longer"));
}

TEST_F(QuantizeMethods, CompareShowsBytesAndRate) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("run", "int8").code, 0);
  const Ended ended = run_lacuna({"compare", run_dir(), run_dir("int8")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("examples/s"));
  const Ended json = run_lacuna({"compare", run_dir(), run_dir("int8"), "--json"});
  bool is_there = false;
  for (const Config& run : parse_yaml(json.out, "compare").at("runs").items()) {
    if (run.required<std::string>("run") != "int8") continue;
    is_there = true;
    EXPECT_GT(run.required<double>("examples_per_second"), 0.0);
    EXPECT_EQ(run.required<int64_t>("parameter_bytes"),
              report("int8").at("int8").required<int64_t>("bytes"));
  }
  EXPECT_TRUE(is_there);
}

}  // namespace
}  // namespace lacuna::quantize_methods_test
