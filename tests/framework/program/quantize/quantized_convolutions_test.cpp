// Networks of convolutions in int8, by every way to int8 and through every door.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "framework/program/quantize/quantized_runs.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna::quantized_convolutions_test {
namespace {

using testing::HasSubstr;

constexpr const char* kResidual = R"(
data: {type: colour_glyphs, train_size: 600, test_size: 100, validation: 40}
model:
  - {type: conv2d, name: stem, out_channels: 8, kernel: 3, padding: 1, stride: 2}
  - batch_norm
  - relu
  - type: residual
    layers:
      - {type: conv2d, name: first, out_channels: 8, kernel: 3, padding: 1, bias: false}
      - batch_norm
      - relu
      - {type: conv2d, name: second, out_channels: 8, kernel: 3, padding: 1, bias: false}
      - batch_norm
  - relu
  - global_average_pool
  - {type: linear, name: last, out_features: 10}
optimizer: {type: adam, lr: 0.02}
train: {epochs: 12, batch_size: 20, threads: 1}
)";

// The configuration without its batch normalizations.
std::string without_norms(std::string yaml) {
  for (size_t at = 0; (at = yaml.find("- batch_norm", at)) != std::string::npos;) {
    const size_t line = yaml.rfind('\n', at);
    yaml.erase(line, yaml.find('\n', at) - line);
    at = line;
  }
  return yaml;
}

std::string with_biases(std::string yaml) {
  const std::string none = ", bias: false";
  for (size_t at = 0; (at = yaml.find(none)) != std::string::npos;) yaml.erase(at, none.size());
  return yaml;
}

class QuantizedConvolutions : public QuantizedRunFixture {
 protected:
  QuantizedConvolutions() { write_text(config(), kResidual); }
  Ended quantize(const std::string& from, const std::string& to, const std::string& how) const {
    return run_lacuna(
        {"quantize", run_dir(from), "--run-dir", run_dir(to), "--set", "quantize={" + how + "}"});
  }
  /// The run "int8" through a file of this format, into a run that the format names.
  void expect_comes_back(const std::string& format) const {
    const std::string file = folder_ / ("model." + format);
    const Ended exported =
        run_lacuna({"export", run_dir("int8"), "--format", format, "--out", file});
    ASSERT_EQ(exported.code, 0) << exported.err;
    const Ended imported = import_from(file, format);
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_EQ(losses(format), losses("int8")) << format;
  }
};

TEST_F(QuantizedConvolutions, KeepTheirLossByEveryWay) {
  ASSERT_EQ(train().code, 0);
  int number = 0;
  for (const std::string how :
       {"algorithm: nearest", "algorithm: gptq", "activations: {when: dynamic}",
        "activations: {when: none}", "activations: {observer: mse}"}) {
    const std::string name = "int8_" + std::to_string(number++);
    const Ended ended = quantize("run", name, how);
    ASSERT_EQ(ended.code, 0) << how << ": " << ended.err;
    EXPECT_EQ(report(name).at("layers").items().size(), 2u) << how;
    const double whole = loss(report(name), "float32");
    EXPECT_NEAR(loss(report(name), "int8"), whole, 0.05 * whole + 0.01) << how;
  }
}

// A training begins with the loss of the run, because its batch normalizations stay.
TEST_F(QuantizedConvolutions, AreTrainedOnWithoutTheFloats) {
  ASSERT_EQ(train({"--set", "train.epochs=4"}).code, 0);
  const auto loss_from = [&](const std::string& run) {
    const Ended ended = train(
        {"--init-from", run_dir(run), "--set", "optimizer.lr=1.0e-9", "--set", "train.epochs=1"},
        "from_" + run);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return load_yaml(run_dir("from_" + run) + "/summary.json").required<double>("train_loss");
  };
  const double whole = loss_from("run");
  const Ended ended = QuantizedRunFixture::quantize("run", "alone", {"--only", "int8"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NEAR(loss_from("alone"), whole, 0.02 * whole);
}

TEST_F(QuantizedConvolutions, ArePrunedAndBroughtToInt8AtOnce) {
  ASSERT_EQ(train().code, 0);
  const std::string file = folder_ / "prune.yaml";
  write_text(file,
             "sparsity: {algorithm: sparsegpt, sparsity: 0.5, param_filter: [first.weight, "
             "second.weight]}\nquantize: {calibration: 200}\n");
  const Ended ended = run_lacuna({"prune", run_dir(), file, "--run-dir", run_dir("int8")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_FALSE(losses("int8").empty());
}

TEST_F(QuantizedConvolutions, AreTrainedOnTheGridsThatQuantizeTakes) {
  ASSERT_EQ(train().code, 0);
  for (const std::string when : {"static", "dynamic", "none"}) {
    const std::string qat = "qat_" + when, int8 = "int8_" + when;
    const Ended trained = train(
        {"--init-from", run_dir(), "--set",
         "quantize={algorithm: qat, activations: {when: " + when + "}}", "--set", "train.epochs=1"},
        qat);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Ended ended =
        run_lacuna({"quantize", run_dir(qat), "--run-dir", run_dir(int8), "--last"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(report(int8).required<std::string>("algorithm"), "qat");
    const double on_grids = load_yaml(run_dir(qat) + "/summary.json").required<double>("test_loss");
    EXPECT_NEAR(loss(report(int8), "int8"), on_grids, 0.02 * on_grids) << when;
  }
}

TEST_F(QuantizedConvolutions, ComeBackThroughEveryDoor) {
  write_text(config(), without_norms(kResidual));
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("run", "int8", "algorithm: nearest").code, 0);
  for (const char* format : {"safetensors", "onnx"}) expect_comes_back(format);
}

// safetensors keeps the norm next to the weight; ONNX has one in the other.
TEST_F(QuantizedConvolutions, ComeBackWithTheNormThatIsFoldedIntoThem) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("run", "int8", "algorithm: nearest").code, 0);
  expect_comes_back("safetensors");
  write_text(config(), with_biases(without_norms(kResidual)));
  expect_comes_back("onnx");
  // The file's int8 weight is the one before the norm, as float32 readers need it.
  write_text(config(), kResidual);
  const std::string file = folder_ / "model.safetensors";
  const Ended begun = train(
      {"--init-from", file, "--set", "train.epochs=1", "--set", "optimizer.lr=0.0000001"}, "begun");
  ASSERT_EQ(begun.code, 0) << begun.err;
  const StateDict was = find_checkpoint(run_dir()).read().state,
                  is = find_checkpoint(run_dir("begun")).read().state;
  const std::vector<float> before = was.get<Tensor>("model/first.weight").to_vector(),
                           after = is.get<Tensor>("model/first.weight").to_vector();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 0.02) << i;
}

TEST_F(QuantizedConvolutions, RefuseAnotherNormThanTheirs) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(quantize("run", "int8", "algorithm: nearest").code, 0);
  const std::string file = folder_ / "model.safetensors";
  ASSERT_EQ(run_lacuna({"export", run_dir("int8"), "--format", "safetensors", "--out", file}).code,
            0);
  const SafetensorsEntry norm = SafetensorsFile(file).tensor("batch_norm2.weight");
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(norm.begin);
  const float other = 3.0f;
  stream.write(reinterpret_cast<const char*>(&other), sizeof other);
  stream.close();
  const Ended imported = import_from(file);
  EXPECT_EQ(imported.code, 2);
  EXPECT_THAT(imported.err, HasSubstr("'first.weight': its scales belong to another batch_norm"));
}

#ifndef LACUNA_ONE_INSTRUCTION_SET
// Convolutions have no form in float32, and full groups are slower in plain C++, too.
TEST_F(QuantizedConvolutions, ArePlannedWithTheirLossInPlainCode) {
  const std::vector<std::string> plan = {"plan", config(), "--set", "quantize={}"};
  const Ended slow =
      run_lacuna(plan, {.in_child = [] { ::setenv("LACUNA_INSTRUCTION_SET", "baseline", 1); }});
  ASSERT_EQ(slow.code, 0) << slow.err;
  EXPECT_THAT(slow.out, HasSubstr("first.weight runs as int8 1x4 plain: slower than float32 csr"));
  if (int8_kernels_name() == "plain") return;
  EXPECT_THAT(run_lacuna(plan).out, testing::Not(HasSubstr("slower than float32 csr")));
}
#endif

}  // namespace
}  // namespace lacuna::quantized_convolutions_test
