// What stands in an ONNX file beside the operators: versions, names, sizes that are left open, and
// metadata.
#include "framework/onnx/onnx_file.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include "framework/onnx/onnx_models.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/storage/onnx_file.hpp"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna::onnx_file_test {
namespace {

using onnx_tests::inputs_of;
using onnx_tests::make_model;
using onnx_tests::metadata_of;
using onnx_tests::read_onnx;
using onnx_tests::results_of;
using testing::ElementsAre;
using testing::Pair;

onnx::ModelProto exported(const std::string& yaml, const Shape& example,
                          const std::map<std::string, std::string>& metadata = {}) {
  const TemporaryFolder folder;
  const auto model = make_model(yaml, example);
  export_onnx(*model, example, metadata, folder / "model.onnx");
  return read_onnx(folder / "model.onnx");
}

TEST(OnnxFile, SaysWhoWroteItAndInWhichVersion) {
  const onnx::ModelProto model =
      exported("[{type: linear, name: fc1, out_features: 3}, relu]", {5},
               {{"lacuna.step", "7"}, {"lacuna.note", "quotes \" and\nlines"}});
  EXPECT_EQ(model.producer_name(), "lacuna");
  EXPECT_EQ(model.producer_version(), kVersion);
  EXPECT_EQ(model.ir_version(), 7);
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).domain(), "");
  EXPECT_EQ(model.opset_import(0).version(), 13);
  EXPECT_EQ(model.graph().name(), "lacuna");
  EXPECT_THAT(metadata_of(model),
              ElementsAre(Pair("lacuna.note", "quotes \" and\nlines"), Pair("lacuna.step", "7")));
}

TEST(OnnxFile, WeightsKeepTheirNamesAndShapes) {
  const onnx::ModelProto model =
      exported("[{type: linear, name: fc1, out_features: 3}, relu]", {5});
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& constant : model.graph().initializer()) {
    shapes[constant.name()] = {constant.dims().begin(), constant.dims().end()};
  }
  EXPECT_THAT(shapes["fc1.weight"], ElementsAre(3, 5));
  EXPECT_THAT(shapes["fc1.bias"], ElementsAre(3));
}

TEST(OnnxFile, SparseInitializersHoldTheNonzerosOfSparseWeights) {
  const TemporaryFolder folder;
  const auto model = make_model(
      "[{type: linear, name: fc1, out_features: 30}, relu, {type: linear, name: fc2, "
      "out_features: 4}]",
      {20});
  const ParameterPtr weight = model->parameter("fc1.weight");
  BitMask mask = BitMask::zeros(weight->numel());
  for (int64_t i = 0; i < weight->numel(); i += 7) mask.set(i);
  weight->set_pattern(Pattern::make(csr_layout(), weight->shape(), mask));
  float next = 0.0f;
  for (float& value : weight->mutable_values().mutable_storage()) value = next += 0.5f;
  export_onnx(*model, {20}, {}, folder / "dense.onnx");
  export_onnx(*model, {20}, {}, folder / "sparse.onnx", OnnxValues::Sparse);
  const onnx::ModelProto dense = read_onnx(folder / "dense.onnx");
  const onnx::ModelProto sparse = read_onnx(folder / "sparse.onnx");
  EXPECT_EQ(dense.graph().sparse_initializer_size(), 0);
  ASSERT_EQ(sparse.graph().sparse_initializer_size(), 1);  // fc2 and the biases are dense
  EXPECT_EQ(sparse.graph().initializer_size(), dense.graph().initializer_size() - 1);
  const onnx::SparseTensorProto& tensor = sparse.graph().sparse_initializer(0);
  EXPECT_EQ(tensor.values().name(), "fc1.weight");
  EXPECT_THAT(std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()),
              ElementsAre(30, 20));
  const std::string &values = tensor.values().raw_data(), &indices = tensor.indices().raw_data();
  ASSERT_EQ(values.size(), static_cast<size_t>(weight->pattern()->nnz()) * sizeof(float));
  ASSERT_EQ(indices.size(), 2 * values.size());
  std::vector<float> whole(static_cast<size_t>(weight->numel()));
  for (size_t i = 0; i < values.size() / sizeof(float); ++i) {
    int64_t index = 0;
    std::memcpy(&index, indices.data() + i * sizeof index, sizeof index);
    std::memcpy(&whole[static_cast<size_t>(index)], values.data() + i * sizeof(float),
                sizeof(float));
  }
  EXPECT_EQ(whole, weight->to_dense().to_vector());
  EXPECT_LT(std::filesystem::file_size(folder / "sparse.onnx"),
            std::filesystem::file_size(folder / "dense.onnx"));
}

TEST(OnnxFile, IsReadBackWithAllParametersAndNoConstants) {
  const TemporaryFolder folder;
  const auto model = make_model(
      "[{type: token_embedding, name: words, vocab_size: 5, features: 4}, {type: "
      "position_embedding, name: places, form: parameter, positions: 6}, layer_norm, {type: "
      "linear, out_features: 12}, {type: attention, heads: 2}, select_token, {type: linear, "
      "out_features: 2}]",
      {6});
  export_onnx(*model, {6}, {}, folder / "model.onnx");
  std::vector<std::string> stored, expected;
  const auto file = open_onnx(folder / "model.onnx");
  for (const ArrayEntry& array : file->arrays()) stored.push_back(array.name);
  for (const ParameterPtr& parameter : model->parameters()) expected.push_back(parameter->name());
  EXPECT_THAT(expected, testing::Contains("places"));
  EXPECT_THAT(stored, testing::UnorderedElementsAreArray(expected));
}

TEST(OnnxFile, TheBatchIsLeftOpen) {
  const onnx::ModelProto mlp = exported("[flatten, {type: linear, out_features: 3}]", {2, 4});
  EXPECT_THAT(inputs_of(mlp), ElementsAre("input float32 [batch, 2, 4]"));
  EXPECT_THAT(results_of(mlp), ElementsAre("output float32 [batch, 3]"));
  const onnx::ModelProto images = exported(
      "[{type: conv2d, out_channels: 4, kernel: 3}, relu, global_average_pool]", {3, 8, 6});
  EXPECT_THAT(inputs_of(images), ElementsAre("input float32 [batch, 3, 8, 6]"));
  EXPECT_THAT(results_of(images), ElementsAre("output float32 [batch, 4]"));
}

TEST(OnnxFile, SoAreBatchAndLengthOfTokens) {
  const onnx::ModelProto gpt = exported(
      "{type: gpt2, vocab_size: 23, n_positions: 12, n_embd: 16, n_layer: 1, n_head: 2}", {12});
  EXPECT_THAT(inputs_of(gpt), ElementsAre("input_ids int64 [batch, sequence]"));
  EXPECT_THAT(results_of(gpt), ElementsAre("output float32 [batch, sequence, 23]"));
  const onnx::ModelProto bert = exported(
      "{type: bert, vocab_size: 23, max_position_embeddings: 12, hidden_size: 16, "
      "num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 24, num_labels: 3}",
      {12});
  EXPECT_THAT(inputs_of(bert),
              testing::UnorderedElementsAre("input_ids int64 [batch, sequence]",
                                            "attention_mask int64 [batch, sequence]",
                                            "token_type_ids int64 [batch, sequence]"));
  EXPECT_THAT(results_of(bert), ElementsAre("output float32 [batch, 3]"));
}

}  // namespace
}  // namespace lacuna::onnx_file_test
