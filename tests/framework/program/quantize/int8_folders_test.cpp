// Quantized runs as Hugging Face folders, and back: the same outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/quantize/quantized_runs.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"

namespace lacuna::int8_folders_test {
namespace {

using testing::HasSubstr;

class Int8Folders : public QuantizedRunFixture {
 protected:
  // The runs "int8" and "back".
  void expect_the_same() const {
    EXPECT_EQ(losses("back"), losses("int8"));
    const auto generated = [&](const std::string& run) {
      return run_lacuna({"generate", run_dir(run), "--prompt", "to be", "--tokens", "12"});
    };
    const Ended text = generated("int8");
    ASSERT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("to be"));
    EXPECT_EQ(generated("back").out, text.out);
  }
};

TEST_F(Int8Folders, FoldersComeBackWithTheSameOutputs) {
  begin_with_text("{type: gpt2, n_embd: 32, n_layer: 2, n_head: 2, n_positions: 8}");
  quantize({"--set", "quantize.calibration=32"});
  const std::string path = folder_ / "hf";
  const Ended exported = export_to("hf", path);
  ASSERT_EQ(exported.code, 0) << exported.err;
  const Config json = load_yaml(path + "/config.json");
  const Config how = json.at("quantization_config");
  EXPECT_EQ(how.required<std::string>("quant_method"), "compressed-tensors");
  EXPECT_EQ(how.required<std::string>("format"), "int-quantized");
  const Config group = how.at("config_groups").at("group_0");
  EXPECT_EQ(group.at("weights").required<int64_t>("num_bits"), 8);
  EXPECT_FALSE(group.at("input_activations").required<bool>("symmetric"));
  EXPECT_FALSE(how.at("ignore").items().empty());
  const SafetensorsFile file(path + "/model.safetensors");
  const std::string layer = "transformer.h.0.mlp.c_fc";
  EXPECT_EQ(file.tensor(layer + ".weight").dtype, "I8");
  EXPECT_EQ(file.tensor(layer + ".weight").shape, (Shape{32, 128}));  // as GPT-2's files have it
  EXPECT_EQ(file.tensor(layer + ".weight_scale").shape, (Shape{1, 128}));
  EXPECT_EQ(file.tensor(layer + ".input_zero_point").dtype, "I8");
  const Ended imported = import_from(path);
  ASSERT_EQ(imported.code, 0) << imported.err;
  expect_the_same();
}

TEST_F(Int8Folders, LlamaComesBackToo) {
  begin_with_text(
      "{type: llama, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, "
      "num_key_value_heads: 2, intermediate_size: 64}");
  quantize({"--set", "quantize.calibration=32"});
  const std::string path = folder_ / "hf";
  const Ended exported = export_to("hf", path);
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(SafetensorsFile(path + "/model.safetensors")
                .tensor("model.layers.0.mlp.up_proj.weight")
                .dtype,
            "I8");
  const Ended imported = import_from(path);
  ASSERT_EQ(imported.code, 0) << imported.err;
  expect_the_same();
}

TEST_F(Int8Folders, BertComesBackToo) {
  std::string lines;
  for (int i = 0; i < 80; ++i) {
    lines += i % 2 == 0 ? "0 a dull film of number " : "1 a fine film of number ";
    lines += std::to_string(i % 7) + "\n";
  }
  write_text(folder_ / "films.txt", lines);
  write_text(config(), "data: {type: labelled_text, train: " + (folder_ / "films.txt") +
                           ", max_length: 10, tokenizer: words, validation: 0.1, test: 0.1}\n"
                           "model: {type: bert, hidden_size: 32, num_hidden_layers: 2, "
                           "num_attention_heads: 2, intermediate_size: 64, "
                           "max_position_embeddings: 16, num_labels: 2}\n"
                           "optimizer: {type: adamw, lr: 0.003}\n"
                           "train: {steps: 8, batch_size: 8, threads: 1}\n");
  quantize({"--set", "quantize.calibration=32"});
  const std::string path = folder_ / "hf";
  ASSERT_EQ(export_to("hf", path).code, 0);
  const std::string layer = "bert.encoder.layer.1.attention.self.key";
  const SafetensorsFile file(path + "/model.safetensors");
  EXPECT_EQ(file.tensor(layer + ".weight").dtype, "I8");
  EXPECT_EQ(file.tensor(layer + ".weight_scale").shape, (Shape{32, 1}));
  const Ended imported = import_from(path);
  ASSERT_EQ(imported.code, 0) << imported.err;
  EXPECT_EQ(losses("back"), losses("int8"));
}

// Weight-only int8: only config.json says it, because other tools do not write lacuna's key.
TEST_F(Int8Folders, OfOtherToolsKeepActivationsAsConfigJsonSays) {
  begin_with_text(
      "{type: llama, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, "
      "num_key_value_heads: 2, intermediate_size: 64}");
  quantize({"--set", "quantize.activations={when: none}"});
  const std::string path = folder_ / "hf", weights = path + "/model.safetensors",
                    config_json = path + "/config.json";
  ASSERT_EQ(export_to("hf", path).code, 0);
  std::string changed = read_text(weights);
  const std::string key = "lacuna.rounds_inputs";
  changed.replace(changed.find(key), key.size(), "another.tools_number");
  write_text(weights, changed);
  for (const std::string& file : {path, weights}) {
    const Ended imported = import_from(file);
    ASSERT_EQ(imported.code, 0) << imported.err;
    expect_the_same();
    EXPECT_THAT(run_lacuna({"eval", run_dir("back")}).err,
                HasSubstr("the run has int8 weights and float32 activations"));
  }
  std::string json = read_text(config_json);
  const std::string first = "\"group_0\": {";
  ASSERT_NE(json.find(first), std::string::npos);
  json.insert(json.find(first), "\"group_1\": {\"input_activations\": {\"num_bits\": 8}}, ");
  write_text(config_json, json);
  const Ended refused = import_from(path, "mixed");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("config.json:"));
  EXPECT_THAT(refused.err, HasSubstr("some groups have input_activations and others do not"));
  EXPECT_FALSE(std::filesystem::exists(run_dir("mixed")));
}

// Only ONNX files state it.
TEST_F(Int8Folders, RefuseAScaleOfAttentionThatTheyCannotState) {
  begin_with_text(
      "{type: gpt2, n_embd: 32, n_layer: 2, n_head: 2, n_positions: 8, attention_scale: 0.2}");
  quantize({"--set", "quantize.calibration=32"});
  for (const std::string format : {"hf", "safetensors"}) {
    const std::string path = folder_ / ("scaled." + format);
    const Ended refused = export_to(format, path);
    EXPECT_EQ(refused.code, 2) << format;
    EXPECT_THAT(refused.err,
                HasSubstr("the int8 weights are of a model with `attention_scale`, which this "
                          "format cannot state; export with --only float32, or to onnx"));
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(export_to(format, path, {"--only", "float32"}).code, 0);
  }
  EXPECT_EQ(export_to("onnx", folder_ / "scaled.onnx").code, 0);
}

}  // namespace
}  // namespace lacuna::int8_folders_test
