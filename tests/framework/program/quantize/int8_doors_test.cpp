// Quantized runs in other tools' files, and back: the same outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/program/quantize/quantized_runs.h"
#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "paths.h"

namespace lacuna::int8_doors_test {
namespace {

using testing::HasSubstr;

constexpr const char* kMlp = R"(
data: {type: glyphs, train_size: 200, test_size: 60, validation: 20}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 40}
  - relu
  - {type: linear, name: fc2, out_features: 32}
  - gelu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.003}
train: {epochs: 2, batch_size: 20, threads: 1}
)";

constexpr const char* kImages = R"(
data: {type: colour_glyphs, train_size: 200, test_size: 60, validation: 20}
model:
  - {type: conv2d, name: stem, out_channels: 8, kernel: 3, padding: 1, stride: 2}
  - relu
  - type: residual
    layers:
      - {type: conv2d, name: first, out_channels: 8, kernel: 3, padding: 1}
      - batch_norm
      - relu
      - {type: conv2d, name: second, out_channels: 8, kernel: 3, padding: 1}
  - relu
  - global_average_pool
  - {type: linear, name: last, out_features: 10}
optimizer: {type: adam, lr: 0.003}
train: {epochs: 2, batch_size: 20, threads: 1}
)";

std::string python_with_onnx() {
  for (const std::string program : {"python3", "/usr/bin/python3"}) {
    if (std::system((program + " -c 'import numpy, onnx' 2> /dev/null").c_str()) == 0) {
      return program;
    }
  }
  return "";
}

class Int8Doors : public QuantizedRunFixture {
 protected:
  Int8Doors() { write_text(config(), kMlp); }

  void expect_back(const std::string& file, const std::string& name) const {
    const Ended imported = import_from(file, name);
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_THAT(imported.out, HasSubstr("the run is quantized"));
    EXPECT_EQ(losses(name), losses("int8"));
    const StateDict there = find_checkpoint(run_dir("int8")).read().state.below("quantized");
    const StateDict back = find_checkpoint(run_dir(name)).read().state.below("quantized");
    EXPECT_EQ(back.get<Tensor>("fc2.weight/scales").to_vector(),
              there.get<Tensor>("fc2.weight/scales").to_vector());
  }
};

// The exported model, by the standard's text in NumPy, against the int8 model itself.
void expect_onnx_computes(const std::string& run, float tolerance) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  const Ended ended = run_lacuna({"export", run, "--format", "onnx", "--out", path});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const CheckpointFile file = find_checkpoint(run);
  const Checkpoint checkpoint = file.read();
  const InputFormat format = InputFormat::from_state(checkpoint.state.below("data"));
  const auto model =
      rebuild_model(saved_config(checkpoint, file.path()), checkpoint.state, format.example_shape);
  Batch batch;
  batch.size = 6;
  std::vector<int64_t> sizes{batch.size};
  std::string dims = std::to_string(batch.size);
  for (const int64_t size : format.example_shape.sizes()) {
    sizes.push_back(size);
    dims += "x" + std::to_string(size);
  }
  batch.inputs = Tensor::empty(Shape(sizes));
  for (int64_t i = 0; i < batch.inputs.numel(); ++i) {
    batch.inputs.mutable_data()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)));
  }
  const NoGrad no_grad;
  const Tensor expected = run_model(*model, batch).value().to(Order::RowMajor);
  std::ofstream(folder / "in.raw", std::ios::binary)
      .write(reinterpret_cast<const char*>(batch.inputs.data()), batch.inputs.numel() * 4);
  const std::string command = python_with_onnx() + " '" + kSourceFolder +
                              "/tests/framework/onnx/evaluate.py' '" + path + "' '" +
                              (folder / "out.raw") + "' 'input:float32:" + dims + ":" +
                              (folder / "in.raw") + "' > '" + (folder / "log") + "' 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_text(folder / "log");
  const std::string bytes = read_text(folder / "out.raw");
  ASSERT_EQ(bytes.size(), static_cast<size_t>(expected.numel()) * 4);
  std::vector<float> found(bytes.size() / 4);
  std::memcpy(found.data(), bytes.data(), bytes.size());
  float largest = 0.0f, apart = 0.0f;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected.data()[i]));
    apart = std::max(apart, std::abs(expected.data()[i] - found[i]));
  }
  EXPECT_LE(apart, largest * tolerance);
  EXPECT_GT(largest, 0.0f);
}

TEST_F(Int8Doors, OnnxComputesWhatTheRunDoes) {
  if (python_with_onnx().empty()) GTEST_SKIP() << "there is no python3 with numpy and onnx";
  for (const auto& [model, yaml, filter] :
       {std::tuple("mlp", kMlp, "'*.weight'"),
        std::tuple("images", kImages, "[first.weight, second.weight]")}) {
    write_text(config(), yaml);
    ASSERT_EQ(train({}, model).code, 0);
    // Sums in float32 may round one activation to the next step, of which there are 255.
    for (const auto& [when, tolerance] :
         {std::pair("static", 0.01f), std::pair("dynamic", 0.01f), std::pair("none", 1e-5f)}) {
      const std::string run = run_dir(std::string(model) + "_" + when);
      const Ended ended = run_lacuna({"quantize", run_dir(model), "--run-dir", run, "--set",
                                      std::string("quantize={param_filter: ") + filter +
                                          ", activations: {when: " + when + "}}"});
      ASSERT_EQ(ended.code, 0) << ended.err;
      SCOPED_TRACE(run);
      expect_onnx_computes(run, tolerance);
    }
  }
}

TEST_F(Int8Doors, SafetensorsAndOnnxComeBackWithTheSameOutputs) {
  quantize();
  const std::string tensors = folder_ / "int8.safetensors", onnx = folder_ / "int8.onnx";
  ASSERT_EQ(export_to("safetensors", tensors).code, 0);
  expect_back(tensors, "from_safetensors");
  ASSERT_EQ(export_to("onnx", onnx, {"--only", "int8"}).code, 0);
  expect_back(onnx, "from_onnx");
  // And is not trained on.
  const Ended resumed = run_lacuna({"train", "--resume", "--run-dir", run_dir("from_onnx")});
  EXPECT_NE(resumed.code, 0);
  EXPECT_THAT(resumed.err, HasSubstr("a quantized model can only be trained with qat"));
  // A new run begins with the values that the int8 weights stand for.
  EXPECT_EQ(train({"--init-from", tensors, "--set", "train.epochs=1"}, "more").code, 0);
}

TEST_F(Int8Doors, Float32IsThereWhenAskedFor) {
  quantize();
  const std::string path = folder_ / "float32.safetensors";
  ASSERT_EQ(export_to("safetensors", path, {"--only", "float32"}).code, 0);
  EXPECT_EQ(SafetensorsFile(path).tensor("fc2.weight").dtype, "F32");
  const Ended npz = export_to("npz", folder_ / "a.npz", {"--only", "int8"});
  EXPECT_EQ(npz.code, 2);
  EXPECT_THAT(npz.err, HasSubstr("the format 'npz' holds only float32"));
  const Ended other = export_to("onnx", folder_ / "a.onnx", {"--only", "int4"});
  EXPECT_EQ(other.code, 2);
  const Ended plain = run_lacuna({"export", run_dir(), "--format", "safetensors", "--out",
                                  folder_ / "b.safetensors", "--only", "int8"});
  EXPECT_EQ(plain.code, 2);
  EXPECT_THAT(plain.err, HasSubstr("has no int8 weights; quantize it first"));
}

// Zeros of the mask stay zeros, and are the mask again.
TEST_F(Int8Doors, FindsTheMaskInTheZeros) {
  write_text(config(),
             std::string(kMlp) +
                 "sparsity: {algorithm: static, sparsity: 0.75, pattern: {type: block, rows: 1, "
                 "cols: 4}, param_filter: fc2.weight}\n");
  quantize();
  const std::string path = folder_ / "sparse.onnx";
  ASSERT_EQ(export_to("onnx", path).code, 0);
  write_text(config(), kMlp);
  const Ended imported = import_from(path, "back", {"--find-pattern"});
  ASSERT_EQ(imported.code, 0) << imported.err;
  EXPECT_EQ(losses("back"), losses("int8"));
  const auto values = find_checkpoint(run_dir("back"))
                          .read()
                          .state.below("quantized")
                          .get<SignedBytes>("fc2.weight/values")
                          .values.size();
  EXPECT_LE(values, 320u);
  EXPECT_GT(values, 280u);
}

// The smallest file, bytes at the positions of the mask, with a batch_norm folded into some; and
// bytes with masks next to them.
TEST_F(Int8Doors, SparseFilesOfBytesComeBackWithTheSameOutputs) {
  const std::string sparsity =
      "sparsity: {algorithm: static, sparsity: 0.75, pattern: {type: block, rows: 1, cols: 4}, "
      "param_filter: ";
  for (const auto& [yaml, filter, weights] :
       {std::tuple(kMlp, "fc2.weight", std::vector<std::string>{"fc2.weight"}),
        std::tuple(kImages, "[first.weight, second.weight]",
                   std::vector<std::string>{"first.weight", "second.weight"})}) {
    std::filesystem::remove_all(run_dir());
    std::filesystem::remove_all(run_dir("int8"));
    write_text(config(), yaml + sparsity + filter + "}\n");
    quantize({"--set", std::string("quantize={param_filter: ") + filter + "}"});
    const std::string path = folder_ / weights.front() + ".safetensors",
                      dense = folder_ / weights.front() + ".dense.safetensors";
    const Ended exported = export_to("safetensors", path, {"--sparse"});
    ASSERT_EQ(exported.code, 0) << exported.err;
    ASSERT_EQ(export_to("safetensors", dense, {"--masks"}).code, 0);
    const SafetensorsFile file(path);
    for (const std::string& weight : weights) {
      EXPECT_EQ(file.tensor(weight + ".data").dtype, "I8") << weight;
      EXPECT_EQ(4 * file.tensor(weight + ".data").bytes,
                SafetensorsFile(dense).tensor(weight).bytes)
          << weight;
    }
    write_text(config(), yaml);
    for (const std::string& exported_to : {path, dense}) {
      const Ended imported = import_from(exported_to, "back", {"--find-pattern"});
      ASSERT_EQ(imported.code, 0) << imported.err;
      EXPECT_EQ(losses("back"), losses("int8")) << exported_to;
      const StateDict there = find_checkpoint(run_dir("int8")).read().state.below("quantized");
      const StateDict back = find_checkpoint(run_dir("back")).read().state.below("quantized");
      for (const std::string& weight : weights) {
        EXPECT_EQ(back.get<SignedBytes>(weight + "/values"),
                  there.get<SignedBytes>(weight + "/values"))
            << exported_to;
      }
    }
  }
}

TEST_F(Int8Doors, RefusesDamagedBitmasksOfBytes) {
  write_text(config(), std::string(kMlp) +
                           "sparsity: {algorithm: static, sparsity: 0.75, param_filter: "
                           "fc2.weight}\n");
  quantize();
  const std::string path = folder_ / "sparse.safetensors";
  ASSERT_EQ(export_to("safetensors", path, {"--sparse"}).code, 0);
  const SafetensorsEntry bits = SafetensorsFile(path).tensor("fc2.weight.bitmask");
  std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(bits.begin);
  stream.write("\xff\xff\xff\xff", 4);
  stream.close();
  write_text(config(), kMlp);
  const Ended imported = import_from(path);
  EXPECT_NE(imported.code, 0);
  EXPECT_THAT(imported.err, HasSubstr("the int8 weight 'fc2.weight' in"));
  EXPECT_THAT(imported.err, HasSubstr("320 values for"));
  EXPECT_FALSE(std::filesystem::exists(run_dir("back")));
}

// Names that mean the same weight are compared with each other before their shapes with the
// model's.
TEST_F(Int8Doors, RefusesHugeShapesOfBytesBeforeItTakesTheirMemory) {
  std::vector<NamedArray> arrays;
  for (const std::string prefix : {"model.", "bert."}) {
    const std::string name = prefix + "fc2.weight";
    arrays.push_back({name + ".data", SignedBytes{.shape = Shape{1}, .values = {1}}});
    arrays.push_back({name + ".bitmask", std::vector<int32_t>{1}});
    arrays.push_back({name + ".shape", std::vector<int64_t>{int64_t{1} << 20, int64_t{1} << 20}});
    arrays.push_back({name + "_scale", Tensor::full(Shape{1}, 1.0f)});
  }
  const std::string path = folder_ / "huge.safetensors";
  write_safetensors_arrays(path, arrays);
  write_text(config(), kMlp);
  const Ended imported = import_from(path);
  EXPECT_EQ(imported.code, 1);
  EXPECT_THAT(imported.err, HasSubstr("words of 32 bits"));
  EXPECT_FALSE(std::filesystem::exists(run_dir("back")));
}

TEST_F(Int8Doors, RefusesDamagedScales) {
  quantize();
  const std::string path = folder_ / "int8.safetensors";
  ASSERT_EQ(export_to("safetensors", path).code, 0);
  const SafetensorsFile file(path);
  const SafetensorsEntry scales = file.tensor("fc2.weight_scale");
  std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(scales.begin);
  const float negative = -1.0f;
  stream.write(reinterpret_cast<const char*>(&negative), sizeof negative);
  stream.close();
  const Ended imported = import_from(path);
  EXPECT_NE(imported.code, 0);
  EXPECT_THAT(imported.err, HasSubstr("the int8 weight 'fc2.weight'"));
  EXPECT_THAT(imported.err, HasSubstr("a scale is -1, and must be a number from 0"));
  EXPECT_FALSE(std::filesystem::exists(run_dir("back")));
}

}  // namespace
}  // namespace lacuna::int8_doors_test
