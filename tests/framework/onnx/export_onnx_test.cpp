// Exported models pass the standard's checker and give, evaluated by its text in NumPy, what they
// give here: every layer, at two sizes of batch and two lengths.
#include "lacuna/framework/onnx/export_onnx.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "framework/onnx/onnx_models.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "paths.h"
#include "throws.h"

namespace lacuna::export_onnx_test {
namespace {

using onnx_tests::make_batch;
using onnx_tests::make_model;
using onnx_tests::outputs_of;

// A python3 that has the packages; empty where there is none.
std::string python() {
  for (const std::string program : {"python3", "/usr/bin/python3"}) {
    if (std::system((program + " -c 'import numpy, onnx' 2> /dev/null").c_str()) == 0) {
      return program;
    }
  }
  return "";
}

struct Written {
  std::string arguments;

  template <class T>
  void add(const TemporaryFolder& folder, const std::string& name, const char* type,
           const Shape& shape, std::span<const T> values) {
    std::string dims;
    for (int i = 0; i < shape.rank(); ++i) dims += (i > 0 ? "x" : "") + std::to_string(shape[i]);
    const std::string file = folder / (name + ".raw");
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
    arguments += " '" + name + ":" + type + ":" + dims + ":" + file + "'";
  }
};

// What evaluate.py makes of the model and the batch's inputs of these names.
std::vector<float> evaluated(const TemporaryFolder& folder, const std::string& model,
                             const Batch& batch, const std::vector<std::string>& names) {
  Written inputs;
  if (batch.inputs.defined()) {
    inputs.add<float>(folder, "input", "float32", batch.inputs.shape(), batch.inputs.storage());
  }
  for (const std::string& name : names) {
    const IndexTensor& ids = batch.named.at(name);
    inputs.add<int64_t>(folder, name, "int64", ids.shape(), ids.values());
  }
  const std::string output = folder / "output.raw", log = folder / "log";
  const std::string command = python() + " '" + kSourceFolder +
                              "/tests/framework/onnx/evaluate.py' '" + model + "' '" + output +
                              "'" + inputs.arguments + " > '" + log + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text(log);
  const std::string bytes = read_text(output);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

struct Exported {
  const char* name;
  const char* yaml;
  Shape example;
  int64_t vocabulary = 0;
  std::vector<std::string> inputs = {};  // named ones that the file asks for
};

std::ostream& operator<<(std::ostream& out, const Exported& exported) {
  return out << exported.name;
}

class ExportedModels : public testing::TestWithParam<Exported> {};

TEST_P(ExportedModels, GiveInNumPyWhatTheyGiveHere) {
  if (python().empty()) GTEST_SKIP() << "there is no python3 with numpy and onnx";
  const Exported& exported = GetParam();
  const std::unique_ptr<Sequential> model = make_model(exported.yaml, exported.example);
  const TemporaryFolder folder;
  export_onnx(*model, exported.example, {{"lacuna.note", "a test"}}, folder / "model.onnx");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"model.onnx"});
  for (const int64_t size : {1, 4}) {
    const bool is_shorter = exported.vocabulary > 0 && size == 4;
    const Shape example = is_shorter ? Shape{exported.example[0] - 3} : exported.example;
    Batch batch = make_batch(size, example, exported.vocabulary);
    std::erase_if(batch.named, [&](const auto& named) {
      return std::count(exported.inputs.begin(), exported.inputs.end(), named.first) == 0;
    });
    onnx_tests::expect_near(evaluated(folder, folder / "model.onnx", batch, exported.inputs),
                            outputs_of(*model, batch),
                            exported.name + std::string(", batch ") + std::to_string(size));
  }
}

const std::vector<std::string> kIdsAlone = {"input_ids"};
const std::vector<std::string> kIdsAndMask = {"input_ids", "attention_mask"};
const std::vector<std::string> kBertInputs = {"input_ids", "attention_mask", "token_type_ids"};

const Exported kExported[] = {
    {"mlp",
     "[flatten, {type: linear, out_features: 24}, relu, {type: dropout, p: 0.3},\n"
     " {type: linear, out_features: 16, bias: false}, {type: batch_norm}, leaky_relu,\n"
     " {type: linear, out_features: 16}, squared_relu, {type: layer_norm}, sigmoid,\n"
     " {type: linear, out_features: 12}, silu, {type: linear, out_features: 8}, tanh,\n"
     " {type: linear, out_features: 8}, gelu, {type: gelu, approximate: tanh},\n"
     " {type: linear, out_features: 8}, {type: semi_sparse_activation}, {type: linear, "
     "out_features: 5}]",
     {6, 7}},
    {"convolutions",
     "[{type: conv2d, out_channels: 8, kernel: 3, padding: 1}, {type: batch_norm, affine: false},\n"
     " relu, {type: conv2d, out_channels: 8, kernel: [3, 5], stride: [2, 1], padding: [1, 2],\n"
     "  groups: 2, bias: false}, {type: group_norm, groups: 4}, {type: semi_sparse_activation},\n"
     " {type: max_pool, kernel: 3, stride: 2, padding: 1},\n"
     " {type: conv2d, out_channels: 12, kernel: 2, dilation: 2},\n"
     " {type: avg_pool, kernel: 3, stride: 2, padding: 1, count_include_pad: false},\n"
     " {type: avg_pool, kernel: 2, stride: 1, padding: 1},\n"
     " {type: parallel, layers: [{type: conv2d, out_channels: 3, kernel: 1}, relu]},\n"
     " flatten, {type: linear, out_features: 7}]",
     {3, 16, 14}},
    {"sequences",
     "[{type: conv1d, out_channels: 6, kernel: 5, padding: 2, stride: 2}, relu,\n"
     " {type: max_pool, kernel: 3, stride: 2, padding: 1}, {type: conv1d, out_channels: 8, "
     "kernel:\n"
     " 3, dilation: 2}, {type: avg_pool, kernel: 2}, {type: batch_norm}, global_average_pool,\n"
     " {type: linear, out_features: 4}]",
     {4, 40}},
    {"resnet", "{type: cifar_resnet, depth: 8, num_labels: 10}", {3, 16, 16}},
    {"gpt2",
     "{type: gpt2, vocab_size: 23, n_positions: 12, n_embd: 16, n_layer: 2, n_head: 2}",
     {12},
     23,
     kIdsAlone},
    {"bert",
     "{type: bert, vocab_size: 23, max_position_embeddings: 12, hidden_size: 16, "
     "num_hidden_layers: 2,\n num_attention_heads: 2, intermediate_size: 24, num_labels: 3}",
     {12},
     23,
     kBertInputs},
    {"bert_masked_lm",
     "{type: bert, head: masked_lm, vocab_size: 23, max_position_embeddings: 12, hidden_size: 16, "
     "num_hidden_layers: 1,\n num_attention_heads: 2, intermediate_size: 24}",
     {12},
     23,
     kBertInputs},
    {"distilbert",
     "{type: distilbert, vocab_size: 23, max_position_embeddings: 12, dim: 16, n_layers: 1, "
     "n_heads: 2,\n hidden_dim: 24, num_labels: 3}",
     {12},
     23,
     kIdsAndMask},
    {"llama",
     "{type: llama, vocab_size: 23, max_position_embeddings: 12, hidden_size: 16, "
     "num_hidden_layers: 2,\n num_attention_heads: 4, num_key_value_heads: 2, intermediate_size: "
     "24}",
     {12},
     23,
     kIdsAlone},
    {"vit",
     "{type: vit, image_size: 16, patch_size: 4, hidden_size: 16, num_hidden_layers: 1,\n"
     " num_attention_heads: 2, intermediate_size: 24, num_labels: 5}",
     {3, 16, 16}},
    {"encoder",
     "[{type: token_embedding, vocab_size: 23, features: 16},\n"
     " {type: position_embedding, positions: 12, kind: sinusoidal},\n"
     " {type: residual, layers: [{type: rms_norm}, {type: linear, out_features: 48},\n"
     "  {type: attention, heads: 2, scale: 0.3}, {type: linear, out_features: 16}]},\n"
     " {type: mean_pool}, {type: linear, out_features: 4}]",
     {12},
     23,
     kIdsAndMask},
};

INSTANTIATE_TEST_SUITE_P(OfEveryLayer, ExportedModels, testing::ValuesIn(kExported),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// The last token is not the padding behind it.
TEST(ExportOnnx, SelectsTheLastTokenByTheMask) {
  if (python().empty()) GTEST_SKIP() << "there is no python3 with numpy and onnx";
  const auto model = make_model(
      "[{type: token_embedding, vocab_size: 23, features: 8}, {type: select_token, index: -2}]",
      {12});
  const TemporaryFolder folder;
  export_onnx(*model, {12}, {}, folder / "model.onnx");
  Batch batch = make_batch(3, {5}, 23);
  batch.named.erase("token_type_ids");
  batch.named["attention_mask"] =
      IndexTensor({3, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0});
  const Tensor outputs = outputs_of(*model, batch);
  onnx_tests::expect_near(evaluated(folder, folder / "model.onnx", batch, kIdsAndMask), outputs,
                          "index -2");
  batch.named.erase("attention_mask");
  EXPECT_NE(outputs_of(*model, batch).to_vector(), outputs.to_vector());
}

void keep_every(int64_t step, const ParameterPtr& weight) {
  BitMask mask = BitMask::zeros(weight->numel());
  for (int64_t i = 0; i < weight->numel(); i += step) mask.set(i);
  weight->set_pattern(Pattern::make(csr_layout(), weight->shape(), mask));
}

TEST(ExportOnnx, SparseInitializersGiveTheOutputsOfDenseOnes) {
  if (python().empty()) GTEST_SKIP() << "there is no python3 with numpy and onnx";
  const Shape example{3, 8, 8};
  const auto model = make_model(
      "[{type: conv2d, name: conv, out_channels: 8, kernel: 3, padding: 1}, relu, flatten,\n"
      " {type: linear, name: fc1, out_features: 24}, tanh, {type: linear, out_features: 5}]",
      example);
  for (const char* name : {"conv.weight", "fc1.weight"}) keep_every(5, model->parameter(name));
  const TemporaryFolder folder;
  EXPECT_EQ(export_onnx(*model, example, {}, folder / "sparse.onnx", OnnxValues::Sparse), 2u);
  EXPECT_EQ(export_onnx(*model, example, {}, folder / "dense.onnx"), 0u);
  const Batch batch = make_batch(4, example, 0);
  const std::vector<float> outputs = evaluated(folder, folder / "sparse.onnx", batch, {});
  EXPECT_EQ(outputs, evaluated(folder, folder / "dense.onnx", batch, {}));
  onnx_tests::expect_near(outputs, outputs_of(*model, batch), "sparse initializers");
}

// One pattern for the embedding and the head, in csr here.
TEST(ExportOnnx, WritesATiedSparseWeight) {
  const std::string gpt2 =
      "{type: gpt2, vocab_size: 23, n_positions: 12, n_embd: 16, n_layer: 1, n_head: 2}";
  const auto model = make_model(gpt2, {12});
  keep_every(5, model->parameter("transformer.wte.weight"));
  const TemporaryFolder folder;
  export_onnx(*model, {12}, {}, folder / "sparse.onnx", OnnxValues::Sparse);
  export_onnx(*model, {12}, {}, folder / "model.onnx");
  EXPECT_LT(std::filesystem::file_size(folder / "sparse.onnx"),
            std::filesystem::file_size(folder / "model.onnx"));
  if (python().empty()) GTEST_SKIP() << "there is no python3 with numpy and onnx";
  Batch batch = make_batch(2, {9}, 23);
  std::erase_if(batch.named, [](const auto& named) { return named.first != kIdsAlone[0]; });
  const std::vector<float> outputs = evaluated(folder, folder / "sparse.onnx", batch, kIdsAlone);
  EXPECT_EQ(outputs, evaluated(folder, folder / "model.onnx", batch, kIdsAlone));
  onnx_tests::expect_near(outputs, outputs_of(*model, batch), "tied and sparse");
}

class OwnLayer final : public Module {
 public:
  std::string_view type() const override { return "own"; }

 protected:
  Variable forward(const Variable& input) override { return input; }
};

TEST(ExportOnnx, RefusesALayerOfAUsersByItsPath) {
  const TemporaryFolder folder;
  Sequential model;
  model.add<ReLU>("relu1");
  model.add("mine", std::make_unique<OwnLayer>());
  expect_throws<Error>([&] { export_onnx(model, {4}, {}, folder / "model.onnx"); },
                       "layer 'mine' (own) cannot be exported to ONNX");
  EXPECT_TRUE(folder.names().empty());
}

TEST(ExportOnnx, RefusesInputsThatAreSparsified) {
  const TemporaryFolder folder;
  Sequential model;
  model.add<ReLU>("relu1").register_input_transform([](const Variable& x) { return x; });
  expect_throws<Error>(
      [&] { export_onnx(model, {4}, {}, folder / "model.onnx"); },
      "layer 'relu1' (relu) cannot be exported to ONNX: its inputs or outputs are sparsified");
  EXPECT_TRUE(folder.names().empty());
}

TEST(ExportOnnx, RefusesABatchNormWithoutRunningStatistics) {
  const TemporaryFolder folder;
  const auto model = make_model("[{type: batch_norm, track_running_stats: false}]", {4});
  expect_throws<Error>([&] { export_onnx(*model, {4}, {}, folder / "model.onnx"); },
                       "train it with track_running_stats: true");
}

// A sparse weight is small in memory; here its values as dense ones would be more than there is.
TEST(ExportOnnx, RefusesWhatNoFileHoldsBeforeItIsMade) {
  const TemporaryFolder folder;
  Sequential model;
  model.add<Linear>("fc", {.in_features = 4194304, .out_features = 4194304, .bias = false});
  expect_throws<Error>([&] { export_onnx(model, {4194304}, {}, folder / "model.onnx"); },
                       "the model has 65536.0 GiB of values, and an ONNX file holds less than 2 "
                       "GiB; export it with --format safetensors");
  EXPECT_TRUE(folder.names().empty());
}

TEST(ExportOnnx, SaysThatAFileCannotBeWritten) {
  const auto model = make_model("[relu]", {4});
  expect_throws<Error>([&] { export_onnx(*model, {4}, {}, "/no/such/folder/model.onnx"); },
                       "/no/such/folder/model.onnx");
}

}  // namespace
}  // namespace lacuna::export_onnx_test
