// Runs with int8 weights and float32 activations: by every way to them and through every door.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/program/quantize/quantized_runs.h"
#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/quantize/quantized_layer.hpp"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/float32_model.hpp"
#include "lacuna/framework/train/run_model.hpp"

namespace lacuna::weight_only_runs_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// A layer of each layout.
constexpr const char* kMlp = R"(
data: {type: glyphs, train_size: 200, test_size: 60, validation: 20}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 40}
  - relu
  - {type: linear, name: fc2, out_features: 32}
  - relu
  - {type: linear, name: fc3, out_features: 32}
  - relu
  - {type: linear, name: fc4, out_features: 32}
  - gelu
  - {type: linear, name: fc5, out_features: 32}
  - relu
  - {type: linear, name: fc6, out_features: 10}
optimizer: {type: adam, lr: 0.003}
sparsity:
  - {algorithm: static, sparsity: 0.8, layout: csr, param_filter: fc2.weight}
  - {algorithm: static, pattern: {type: nm, n: 2, m: 4}, layout: nm, param_filter: fc3.weight}
  - {algorithm: static, sparsity: 0.5, pattern: {type: block, rows: 4, cols: 4}, layout: block, param_filter: fc4.weight}
train: {epochs: 2, batch_size: 20, threads: 1}
)";

constexpr const char* kImages = R"(
data: {type: colour_glyphs, train_size: 200, test_size: 60, validation: 20}
model:
  - {type: conv2d, name: stem, out_channels: 8, kernel: 3, padding: 1, stride: 2}
  - relu
  - {type: conv2d, name: first, out_channels: 6, kernel: 3, padding: 1}
  - batch_norm
  - relu
  - {type: conv2d, name: second, out_channels: 8, kernel: 3, padding: 1}
  - relu
  - global_average_pool
  - {type: linear, name: last, out_features: 10}
optimizer: {type: adam, lr: 0.003}
sparsity: {algorithm: static, sparsity: 0.7, layout: csr, param_filter: first.weight}
train: {epochs: 2, batch_size: 20, threads: 1}
)";

constexpr const char* kHalf = "sparsity: {algorithm: static, sparsity: 0.5}\n";
constexpr const char* kSection = "quantize={calibration: 64, activations: {when: none}}";

class WeightOnlyRuns : public QuantizedRunFixture {
 protected:
  WeightOnlyRuns() { write_text(config(), kMlp); }
  static std::string rounds_inputs(const std::string& path) {
    const std::map<std::string, std::string> metadata = open_array_file(path)->metadata();
    const auto found = metadata.find("lacuna.rounds_inputs");
    return found == metadata.end() ? "" : found->second;
  }
  static std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    const auto file = open_array_file(path);
    for (const ArrayEntry& entry : file->arrays()) names.push_back(entry.name);
    return names;
  }
  // The run "int8" through a file, into the run "back".
  void expect_back(const std::string& file) const {
    const Ended imported = import_from(file);
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_EQ(losses("back"), losses("int8")) << file;
    const auto layers_of = [&](const std::string& run) {
      return quantized_layers(find_checkpoint(run_dir(run)).read().state.below("quantized"));
    };
    const std::vector<QuantizedLayer> there = layers_of("int8"), back = layers_of("back");
    ASSERT_EQ(back.size(), there.size());
    EXPECT_TRUE(have_float32_inputs(back)) << file;
    for (size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i].scales, there[i].scales);
  }

  static std::vector<float> outputs(Sequential& model, const Batch& batch) {
    const NoGrad no_grad;
    return run_model(model, batch).value().to_vector();
  }
  // A quantized run computes what its float32 model does with weights scale · value.
  void expect_rounded_weights(const std::string& run) const {
    const CheckpointFile file = find_checkpoint(run_dir(run));
    const Checkpoint checkpoint = file.read();
    const Config config = saved_config(checkpoint, file.path());
    const Shape example = InputFormat::from_state(checkpoint.state.below("data")).example_shape;
    register_builtins();
    const DataSplits data = load_data(config.at("data"), 0);
    const Batch batch = data.train->gather(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6});
    const auto float32 = rebuild_float32_model(config, checkpoint.state, example);
    const std::vector<float> before = outputs(*float32, batch);
    for (const QuantizedLayer& layer : quantized_layers(checkpoint.state.below("quantized"))) {
      Parameter& weight = *float32->parameter(layer.weight);
      const Pattern& pattern = *weight.pattern();
      Tensor dense = Tensor::zeros(weight.shape());
      size_t place = 0;
      for (int64_t i = 0; i < dense.numel(); ++i) {
        if (!pattern.is_dense() && !pattern.mask().test(i)) continue;
        const auto row = static_cast<size_t>(i / matrix_columns(weight.shape()));
        dense.mutable_data()[i] = layer.scales[row] * static_cast<float>(layer.values[place++]);
      }
      weight.assign(dense);
    }
    const auto model = rebuild_model(config, checkpoint.state, example);
    EXPECT_EQ(outputs(*model, batch), outputs(*float32, batch));
    EXPECT_NE(outputs(*model, batch), before);
  }
};

TEST_F(WeightOnlyRuns, ComputeWhatFloat32DoesWithTheRoundedWeights) {
  const std::string gpt = "{type: gpt2, n_embd: 32, n_layer: 2, n_head: 2, n_positions: 8}";
  for (const std::string model : {kMlp, kImages, gpt.c_str()}) {
    std::filesystem::remove_all(run_dir());
    std::filesystem::remove_all(run_dir("int8"));
    model == gpt ? begin_with_text(gpt, kHalf) : write_text(config(), model);
    quantize({"--set", kSection});
    expect_rounded_weights("int8");
    EXPECT_EQ(losses("int8").back(),
              report("int8").at("int8").at("splits").items().back().at("loss").text());
    if (model != gpt) continue;
    const Ended text =
        run_lacuna({"generate", run_dir("int8"), "--prompt", "to be", "--tokens", "12"});
    EXPECT_EQ(text.code, 0) << text.err;
  }
}

TEST_F(WeightOnlyRuns, ReportWhatIsNotRounded) {
  quantize({"--set", "quantize={algorithm: nearest, activations: {when: none}}"});
  const Config json = report("int8");
  ASSERT_EQ(json.at("layers").items().size(), 4u);
  for (const Config& layer : json.at("layers").items()) {
    EXPECT_EQ(layer.required<double>("input_scale"), 0.0);
    EXPECT_FALSE(layer.has("input_zero"));
  }
  std::map<std::string, std::string> kernels;
  for (const Config& row : json.at("products").items()) {
    kernels[row.required<std::string>("parameter")] = row.required<std::string>("kernel");
    EXPECT_FALSE(row.has("weights_in_group"));
  }
  EXPECT_EQ(kernels["fc1.weight"], "float32");
  EXPECT_EQ(kernels["fc2.weight"], "csr, float32 of int8 weights");
  EXPECT_EQ(kernels["fc3.weight"], "nm 2:4, float32 of int8 weights");
  EXPECT_EQ(kernels["fc4.weight"], "block 4x4, float32 of int8 weights");
  EXPECT_EQ(kernels["fc5.weight"], "dense, float32 of int8 weights");
  EXPECT_EQ(json.at("int8").required<int64_t>("bytes"),
            json.at("float32").required<int64_t>("bytes"));
  const Ended planned = run_lacuna({"plan", config(), "--set", kSection});
  EXPECT_THAT(planned.out,
              HasSubstr("fc2.weight runs as csr, float32 of int8 weights: activations are not "
                        "rounded, so files become smaller, and products not faster\n"));
  const Ended evaluated = run_lacuna({"eval", run_dir("int8")});
  EXPECT_THAT(evaluated.out, HasSubstr("int8     test"));
  EXPECT_THAT(evaluated.out, HasSubstr("float32  test"));
  const std::string note = "the run has int8 weights and float32 activations";
  EXPECT_THAT(evaluated.err, HasSubstr(note));
  EXPECT_THAT(run_lacuna({"eval", run_dir()}).err, Not(HasSubstr(note)));
  EXPECT_THAT(run_lacuna({"inspect", run_dir("int8")}).out, HasSubstr(" float32 "));
}

#ifndef LACUNA_ONE_INSTRUCTION_SET
TEST_F(WeightOnlyRuns, AreNotSlowWithoutInt8Instructions) {
  quantize({"--set", kSection});
  const Ended ended =
      run_lacuna({"eval", run_dir("int8")},
                 {.in_child = [] { ::setenv("LACUNA_INSTRUCTION_SET", "baseline", 1); }});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, Not(HasSubstr("int8 is slow")));
}
#endif

TEST_F(WeightOnlyRuns, AreSmallWithoutTheFloats) {
  quantize({"--set", kSection});
  const Ended ended = quantize("run", "alone", {"--only", "int8", "--set", kSection});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(losses("alone"), losses("int8"));
  EXPECT_FALSE(find_checkpoint(run_dir("alone")).read().state.contains("model/fc5.weight"));
  EXPECT_THAT(run_lacuna({"eval", run_dir("alone")}).out,
              HasSubstr("float32: the run has int8 weights alone"));
  const auto size = [&](const std::string& run) {
    return std::filesystem::file_size(find_checkpoint(run_dir(run)).path());
  };
  EXPECT_LT(size("alone"), size("int8"));
  const Ended resumed = run_lacuna({"train", "--resume", "--run-dir", run_dir("alone")});
  EXPECT_THAT(resumed.err, HasSubstr("a quantized model can only be trained with qat"));
  EXPECT_EQ(train({"--init-from", run_dir("alone"), "--set", "train.epochs=1"}, "more").code, 0);
}

// Convolutions that are dense, masked and csr: their shapes are not those of matrices. One has a
// batch_norm behind it.
TEST_F(WeightOnlyRuns, OfConvolutionsAreReadWithoutTheFloats) {
  write_text(config(), kImages);
  for (const std::string layout : {"masked", "csr"}) {
    ASSERT_EQ(
        train({"--set", "sparsity.layout=" + layout, "--set", "model.2.out_channels=8"}, layout)
            .code,
        0);
    for (const std::string when : {"none", "static"}) {
      for (const std::string weights : {"[first.weight, second.weight]", "second.weight"}) {
        SCOPED_TRACE(layout + ", " + when + ", " + weights);
        for (const char* run : {"int8", "alone"}) std::filesystem::remove_all(run_dir(run));
        const std::string section = "quantize={calibration: 64, activations: {when: " + when +
                                    "}, param_filter: " + weights + "}";
        ASSERT_EQ(quantize(layout, "int8", {"--set", section}).code, 0);
        ASSERT_EQ(quantize(layout, "alone", {"--set", section, "--only", "int8"}).code, 0);
        EXPECT_EQ(losses("alone"), losses("int8"));
        EXPECT_THAT(run_lacuna({"eval", run_dir("alone")}).out,
                    HasSubstr("float32: the run has int8 weights alone"));
        const Ended exported = run_lacuna({"export", run_dir("alone"), "--format", "safetensors",
                                           "--out", folder_ / "alone.safetensors", "--overwrite"});
        EXPECT_EQ(exported.code, 0) << exported.err;
        if (weights == "second.weight") continue;  // no batch_norm is behind it
        std::filesystem::remove_all(run_dir("back"));
        const Ended imported =
            run_lacuna({"import", folder_ / "alone.safetensors", "--config",
                        run_dir(layout) + "/config.yaml", "--out", run_dir("back")});
        ASSERT_EQ(imported.code, 0) << imported.err;
        EXPECT_EQ(losses("back"), losses("int8"));
      }
    }
  }
}

TEST_F(WeightOnlyRuns, ComeBackThroughFilesOfArrays) {
  for (const char* model : {kMlp, kImages}) {
    std::filesystem::remove_all(run_dir());
    std::filesystem::remove_all(run_dir("int8"));
    write_text(config(), model);
    quantize({"--set", kSection});
    const std::string dense = folder_ / "dense.safetensors", sparse = folder_ / "a.safetensors";
    ASSERT_EQ(export_to("safetensors", dense, {"--masks", "--overwrite"}).code, 0);
    ASSERT_EQ(export_to("safetensors", sparse, {"--sparse", "--overwrite"}).code, 0);
    const std::string weight = model == kMlp ? "fc2" : "first";
    EXPECT_EQ(SafetensorsFile(dense).tensor(weight + ".weight").dtype, "I8");
    EXPECT_EQ(SafetensorsFile(sparse).tensor(weight + ".weight.data").dtype, "I8");
    EXPECT_LT(std::filesystem::file_size(sparse), std::filesystem::file_size(dense));
    for (const std::string& path : {dense, sparse}) {
      EXPECT_EQ(rounds_inputs(path), "false");
      EXPECT_THAT(names_in(path), testing::Each(Not(HasSubstr("input_"))));
      expect_back(path);
    }
    const std::string float32 = folder_ / "float32.safetensors";
    ASSERT_EQ(export_to("safetensors", float32, {"--only", "float32", "--overwrite"}).code, 0);
    EXPECT_EQ(rounds_inputs(float32), "");
  }
}

TEST_F(WeightOnlyRuns, ComeBackThroughOnnxAndHuggingFaceFolders) {
  begin_with_text("{type: gpt2, n_embd: 32, n_layer: 2, n_head: 2, n_positions: 8}", kHalf);
  quantize({"--set", kSection});
  const std::string onnx = folder_ / "model.onnx", hf = folder_ / "hf";
  ASSERT_EQ(export_to("onnx", onnx).code, 0);
  EXPECT_EQ(rounds_inputs(onnx), "false");
  const std::string bytes = read_text(onnx);
  EXPECT_THAT(bytes, HasSubstr("weight/DequantizeLinear"));
  EXPECT_THAT(bytes, Not(HasSubstr("weight/input/")));
  expect_back(onnx);
  ASSERT_EQ(export_to("hf", hf).code, 0);
  const Config how = load_yaml(hf + "/config.json").at("quantization_config");
  EXPECT_EQ(how.required<std::string>("format"), "naive-quantized");
  const Config group = how.at("config_groups").at("group_0");
  EXPECT_TRUE(group.get("input_activations").is_null());
  EXPECT_EQ(group.at("weights").required<int64_t>("num_bits"), 8);
  EXPECT_THAT(names_in(hf + "/model.safetensors"), testing::Each(Not(HasSubstr("input_"))));
  expect_back(hf);
}

TEST_F(WeightOnlyRuns, RefuseFilesThatContradictThemselves) {
  quantize({"--set", "quantize={param_filter: fc2.weight, calibration: 64}"});
  const std::string path = folder_ / "static.safetensors", bad = folder_ / "bad.safetensors";
  ASSERT_EQ(export_to("safetensors", path).code, 0);
  const std::string whole = read_text(path);
  const auto expect_refused = [&](const std::string& value, const std::string& words) {
    std::string header = R"("format":"pt")", stated = R"("lacuna.rounds_inputs":")" + value + '"';
    std::string changed = whole;
    changed.replace(changed.find(header), header.size(), header + "," + stated);
    uint64_t length = 0;
    std::memcpy(&length, changed.data(), sizeof length);
    length += stated.size() + 1;
    std::memcpy(changed.data(), &length, sizeof length);
    write_text(bad, changed);
    const Ended imported = import_from(bad);
    EXPECT_EQ(imported.code, 1);
    EXPECT_THAT(imported.err, HasSubstr("the int8 weight 'fc2.weight' in"));
    EXPECT_THAT(imported.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(run_dir("back")));
  };
  expect_refused("false",
                 "its inputs have a scale, but the file's metadata has lacuna.rounds_inputs "
                 "'false'");
  expect_refused("never",
                 "the file's metadata has lacuna.rounds_inputs 'never'; expected true or false");
}

TEST_F(WeightOnlyRuns, ArePrunedAtOnce) {
  ASSERT_EQ(train({"--set", "sparsity=null"}).code, 0);
  const std::string file = folder_ / "both.yaml";
  for (const std::string algorithm : {"gptq, calibration: 64", "nearest"}) {
    write_text(file,
               "sparsity: {algorithm: sparsegpt, sparsity: 0.7, param_filter: [fc2.weight, "
               "fc3.weight]}\nquantize: {activations: {when: none}, algorithm: " +
                   algorithm + "}\n");
    std::filesystem::remove_all(run_dir("int8"));
    const Ended ended = run_lacuna({"prune", run_dir(), file, "--run-dir", run_dir("int8")});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(report("int8").at("layers").items().size(), 4u);
    expect_rounded_weights("int8");
  }
}

TEST_F(WeightOnlyRuns, AreTrainedWithFloat32Activations) {
  for (const std::string scales : {"observed", "learned"}) {
    const std::string name = "int8_" + scales;
    const Ended trained = train(
        {"--set", "quantize={algorithm: qat, activations: {when: none}, scales: " + scales + "}"},
        scales);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const StateDict qat = find_checkpoint(run_dir(scales)).read().state.below("qat");
    EXPECT_FALSE(qat.contains("fc2.weight/input_scale"));
    const Ended ended = quantize(scales, name, {"--last"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    expect_rounded_weights(name);
    const double on_grids = summary(run_dir(scales)).required<double>("test_loss");
    EXPECT_NEAR(loss(report(name), "int8"), on_grids, 1e-6 * on_grids);
    // Resumed, it is the same run.
    std::vector<std::string> half{
        "--set", "quantize={algorithm: qat, activations: {when: none}, scales: " + scales + "}",
        "--set", "train.epochs=1"};
    ASSERT_EQ(train(half, "half_" + scales).code, 0);
    ASSERT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir("half_" + scales), "--set",
                          "train.epochs=2"})
                  .code,
              0);
    const StateDict resumed = find_checkpoint(run_dir("half_" + scales)).read().state;
    EXPECT_THAT(differences(resumed.below("qat"), qat), testing::IsEmpty());
  }
}

// Grids of activations that a training has found are not taken over, and are found if it has none.
TEST_F(WeightOnlyRuns, ChangeWhatATrainingRounded) {
  for (const auto& [before, after] :
       {std::pair("static", "none"), {"none", "static"}, {"static", "dynamic"}}) {
    const std::string trained = std::string(before) + "_for_" + after;
    ASSERT_EQ(train({"--set",
                     std::string("quantize={algorithm: qat, activations: {when: ") + before + "}}"},
                    trained)
                  .code,
              0);
    const std::string name = std::string("int8_") + after;
    const Ended ended = quantize(trained, name,
                                 {"--set", std::string("quantize.activations.when=") + after,
                                  "--set", "quantize.algorithm=qat"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    for (const Config& layer : report(name).at("layers").items()) {
      EXPECT_EQ(layer.has("input_zero"), after == std::string("static"));
    }
  }
}

}  // namespace
}  // namespace lacuna::weight_only_runs_test
