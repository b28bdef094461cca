// config.json of Hugging Face's models, read (`from_hf`) and written.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/presets/presets.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::hugging_face_test {
namespace {

Config preset(const std::string& yaml) { return expand_preset(parse_yaml(yaml, "m.yaml")); }

class FromHuggingFace : public testing::Test {
 protected:
  Config read(const std::string& more = "") {
    return parse_yaml("{from_hf: " + folder_.path() + more + "}", "m.yaml");
  }
  TemporaryFolder folder_;
};

TEST_F(FromHuggingFace, TakesTheFamilyAndItsKeysFromTheFile) {
  folder_.write("config.json",
                R"({"model_type": "gpt2", "vocab_size": 53, "n_positions": 24, "n_embd": 32,
                    "n_layer": 2, "n_head": 4, "n_inner": null, "layer_norm_epsilon": 1e-05,
                    "resid_pdrop": 0.0, "quantization": {"bits": 8}, "label2id": {"A": 0}})");
  const Config section = read(", n_layer: 1");
  const Config expanded = expand_preset(section);
  EXPECT_EQ(expanded, preset("{type: gpt2, vocab_size: 53, n_positions: 24, n_embd: 32, n_head: 4, "
                             "n_layer: 1, layer_norm_epsilon: 1.0e-5, resid_pdrop: 0}"));
  EXPECT_FALSE(section.has("from_hf"));
  EXPECT_EQ(section.get("type").text(), "gpt2");
  EXPECT_EQ(section.get("init_from").text(), folder_ / "model.safetensors");
  EXPECT_EQ(section.get("n_embd").text(), "32");
}

// A file of a masked language model is one again where tokens have labels; elsewhere it classifies.
TEST_F(FromHuggingFace, TakesTheHeadFromTheArchitectureWhereLabelsAreTokens) {
  folder_.write("config.json", R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})");
  const auto head = [&](const std::string& more, bool has_token_labels) {
    const Config section = read(more);
    expand_preset(section,
                  {.vocabulary_size = 9, .num_classes = 9, .has_token_labels = has_token_labels});
    return section.get("head").text();
  };
  EXPECT_EQ(head("", true), "masked_lm");
  EXPECT_EQ(head("", false), "classification");
  EXPECT_EQ(head(", head: classification", true), "classification");
  folder_.write("config.json",
                R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"]})");
  EXPECT_EQ(head("", true), "classification");
}

// Of no use for the layers, and not to be lost on the way from one folder to the next.
TEST_F(FromHuggingFace, KeepsIdsOfTokensAndTheLongestText) {
  folder_.write("config.json",
                R"({"model_type": "llama", "vocab_size": 53, "hidden_size": 16,
                    "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16,
                    "max_position_embeddings": 4096, "bos_token_id": 7, "eos_token_id": [8, 9],
                    "pad_token_id": -1})");
  const Config section = read();
  expand_preset(section);
  const Config json = hugging_face_config(section, {.example_shape = {16}, .class_names = {}});
  EXPECT_EQ(json.required<int64_t>("max_position_embeddings"), 4096);
  EXPECT_EQ(json.required<int64_t>("bos_token_id"), 7);
  EXPECT_EQ(json.required<std::vector<int64_t>>("eos_token_id"), (std::vector<int64_t>{8, 9}));
  EXPECT_FALSE(json.has("pad_token_id"));
}

// Whoever loads the weights says how pickles are converted; the folder is what it is given.
TEST_F(FromHuggingFace, AFolderOfOtherWeightsIsLeftToWhoLoadsThem) {
  folder_.write("config.json", R"({"model_type": "gpt2"})");
  folder_.write("pytorch_model.bin", "\x80\x02.");
  const Config pickled = read();
  expand_preset(pickled);
  EXPECT_EQ(pickled.get("init_from").text(), folder_.path());
  folder_.write("model.safetensors", "");
  const Config both = read();
  expand_preset(both);
  EXPECT_EQ(both.get("init_from").text(), folder_ / "model.safetensors");
}

TEST_F(FromHuggingFace, OwnInitialValuesWin) {
  folder_.write("config.json", R"({"model_type": "gpt2"})");
  const Config section = read(", init_from: {path: other.safetensors, skip: lm_head.*}");
  expand_preset(section);
  EXPECT_EQ(section.get("init_from").get("path").text(), "other.safetensors");
}

TEST_F(FromHuggingFace, LlamasRotaryParametersMayStandApart) {
  folder_.write("config.json",
                R"({"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4,
                    "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})");
  const Config section = read();
  expand_preset(section);
  EXPECT_EQ(section.get("rope_theta").as<double>(), 500000.0);
  folder_.write("config.json",
                R"({"model_type": "llama", "rope_parameters": {"rope_type": "yarn"}})");
  expect_throws<ConfigError>([&] { expand_preset(read()); },
                             "only rotary positions of the default type are supported");
  folder_.write("config.json",
                R"({"model_type": "llama", "rope_parameters": {"type": "linear", "factor": 4.0}})");
  expect_throws<ConfigError>([&] { expand_preset(read()); },
                             "only rotary positions of the default type are supported");
  folder_.write("config.json",
                R"({"model_type": "llama", "rope_parameters": {"partial_rotary_factor": 0.5}})");
  expect_throws<ConfigError>([&] { expand_preset(read()); }, "only rope_theta is supported");
}

// Otherwise outputs would get the names of other classes.
TEST_F(FromHuggingFace, LabelsHaveTheOrderOfTheData) {
  folder_.write("config.json", R"({"model_type": "bert", "vocab_size": 9, "hidden_size": 8,
      "num_attention_heads": 2, "id2label": {"1": "neutral", "0": "yes", "2": "no"}})");
  const auto expand = [&](const std::string& more, const std::vector<std::string>& names) {
    const Config section = read(more);
    expand_preset(section, {.num_classes = 3, .class_names = names});
    return section.get("num_labels").text();
  };
  EXPECT_EQ(expand("", {"yes", "neutral", "no"}), "3");
  EXPECT_EQ(expand("", {"a", "b", "c"}), "3");
  EXPECT_EQ(expand(", num_labels: 3", {}), "3");
  expect_throws<ConfigError>(
      [&] {
        expand("", {"neutral", "no", "yes"});
      },
      "the outputs are yes, neutral, no, in this order, and the classes of "
      "the data neutral, no, yes; set data.class_names: [yes, neutral, no]");
  folder_.write("config.json", R"({"model_type": "gpt2", "id2label": {"0": "LABEL_0"}})");
  EXPECT_NO_THROW(expand_preset(read()));
}

TEST_F(FromHuggingFace, RefusesWhatItCannotTake) {
  const auto refused = [&](const std::string& more, const std::string& message) {
    expect_throws<ConfigError>([&] { expand_preset(read(more)); }, message);
  };
  refused("", "m.yaml:1:11: from_hf: cannot read config '" + (folder_ / "config.json"));
  folder_.write("config.json", "[1]");
  refused("", "config.json:1:1: expected a JSON object");
  folder_.write("config.json", "{\"vocab_size\": 2}");
  refused("", "model_type, the model's family, is missing");
  folder_.write("config.json", "{\"model_type\": \"t5\"}");
  refused("", "there is no preset for the family 't5', only for bert, cifar_resnet, distilbert");
  folder_.write("config.json", "{\"model_type\": \"gpt2\", \"scale_attn_weights\": false}");
  refused("", "config.json:1:46: ");
  refused(", type: bert", "is a model of the family 'gpt2'; leave `type` out");
  folder_.write("config.json", "{\"model_type\": \"gpt2\", \"n_head\": \"many\"}");
  EXPECT_NO_THROW(expand_preset(read()));  // found where the layer is built
}

}  // namespace
}  // namespace lacuna::hugging_face_test
