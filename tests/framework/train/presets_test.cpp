// Presets as models: the same as what they are short for, with the names and values of files.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/types/labelled_text.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/presets/foreign_names.hpp"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/weights/initial_values.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::presets_test {
namespace {

std::unique_ptr<Sequential> build(const std::string& yaml, const Shape& example) {
  register_builtins();
  const Config section = parse_yaml(yaml, "m.yaml");
  auto model = build_model(model_layers(section), example);
  section.require_all_read();
  model->initialize(5);
  return model;
}

constexpr const char* kGpt2 =
    "{type: gpt2, n_layer: 2, n_head: 4, n_embd: 16, n_positions: 8, vocab_size: 11}";
constexpr const char* kBert =
    "{type: bert, vocab_size: 13, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, "
    "intermediate_size: 24, max_position_embeddings: 10, num_labels: 3}";
constexpr const char* kVit =
    "{type: vit, hidden_size: 12, num_hidden_layers: 2, num_attention_heads: 3, "
    "intermediate_size: 20, patch_size: 4, num_labels: 5}";
constexpr const char* kLlama =
    "{type: llama, vocab_size: 11, hidden_size: 16, intermediate_size: 20, num_hidden_layers: 2, "
    "num_attention_heads: 4, num_key_value_heads: 2}";

// The models of the tests, and what goes into them.
struct Family {
  const char* yaml;
  Shape example;
};
std::vector<Family> families() {
  return {{kGpt2, {8}},
          {kBert, {10}},
          {"{type: bert, head: masked_lm, vocab_size: 13, hidden_size: 16, num_hidden_layers: 1, "
           "num_attention_heads: 2, intermediate_size: 24}",
           {10}},
          {"{type: distilbert, vocab_size: 13, dim: 16, n_layers: 1, n_heads: 2}", {10}},
          {kVit, {3, 8, 8}},
          {kLlama, {8}}};
}

constexpr const char* kGpt2ByHand = R"(
- {type: token_embedding, name: transformer.wte, vocab_size: 11, features: 16, init: {type: normal, std: 0.02}}
- {type: position_embedding, name: transformer.wpe, positions: 8, init: {type: normal, std: 0.02}}
- type: sequential
  name: transformer.h
  repeat: 2
  layers:
    - type: residual
      layers:
        - {type: layer_norm, name: ln_1}
        - {type: linear, name: attn.c_attn, out_features: 48, init: {type: normal, std: 0.02}}
        - {type: attention, heads: 4, causal: true}
        - {type: linear, name: attn.c_proj, out_features: 16, init: {type: normal, std: 0.01}}
    - type: residual
      layers:
        - {type: layer_norm, name: ln_2}
        - {type: linear, name: mlp.c_fc, out_features: 64, init: {type: normal, std: 0.02}}
        - {type: gelu, approximate: tanh}
        - {type: linear, name: mlp.c_proj, out_features: 16, init: {type: normal, std: 0.01}}
- {type: layer_norm, name: transformer.ln_f}
- {type: linear, name: lm_head, bias: false, tied_to: transformer.wte}
)";

TEST(PresetModels, Gpt2IsTheListWrittenByHand) {
  const auto preset = build(kGpt2, {8});
  const auto written = build(kGpt2ByHand, {8});
  const std::vector<ParameterPtr> ours = preset->parameters(), theirs = written->parameters();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i]->name(), theirs[i]->name());
    EXPECT_EQ(ours[i]->shape(), theirs[i]->shape()) << ours[i]->name();
    EXPECT_EQ(ours[i]->to_dense().to_vector(), theirs[i]->to_dense().to_vector())
        << ours[i]->name();
  }
  EXPECT_EQ(preset->output_shape({8}), (Shape{8, 11}));
}

TEST(PresetModels, DrawAsTheFamiliesDo) {
  for (const Family& family : families()) {
    const auto model = build(family.yaml, family.example);
    for (const ParameterPtr& parameter : model->parameters()) {
      const std::vector<float> values = parameter->to_dense().to_vector();
      double squares = 0.0;
      for (const float value : values) squares += double{value} * value;
      const double spread = std::sqrt(squares / static_cast<double>(values.size()));
      const std::string& name = parameter->name();
      if (name.ends_with("bias")) {
        EXPECT_EQ(spread, 0.0) << name;
      } else if (parameter->shape().rank() == 1) {
        EXPECT_EQ(spread, 1.0) << name;  // of norms
      } else if (values.size() > 100) {
        const bool is_projection = name.ends_with("c_proj.weight");
        EXPECT_NEAR(spread, is_projection ? 0.01 : 0.02, is_projection ? 0.002 : 0.004) << name;
      }
    }
  }
}

TEST(PresetModels, GiveWhatTheirHeadsSay) {
  const std::vector<Shape> outputs = {{8, 11}, {3}, {10, 13}, {2}, {5}, {8, 11}};
  size_t i = 0;
  for (const Family& family : families()) {
    EXPECT_EQ(build(family.yaml, family.example)->output_shape(family.example), outputs[i++])
        << family.yaml;
  }
}

// What a model is saved as and with which names: what DIR/model.safetensors would hold.
std::vector<std::pair<std::string, Tensor>> as_a_file(const Module& model) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::string& name = parameter->name();
    const bool is_exchanged = is_conv1d_weight(name);
    tensors.emplace_back(name,
                         is_exchanged ? transposed(parameter->to_dense()) : parameter->to_dense());
  }
  return tensors;
}

TEST(PresetModels, StartFromAFolderOfHuggingFaces) {
  const TemporaryFolder folder;
  const auto model = build(kGpt2, {8});
  write_safetensors(folder / "model.safetensors", as_a_file(*model));
  folder.write("config.json",
               R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2,
                   "n_head": 4, "n_embd": 16, "n_positions": 8, "vocab_size": 11})");
  const Config section = parse_yaml("{from_hf: " + folder.path() + "}", "m.yaml");
  const auto loaded = build_model(model_layers(section), {8});
  loaded->initialize(6);
  Config config = Config::map({{"model", section}});
  DataSplits data;
  data.train = std::make_shared<const LabelledText>(std::make_shared<const ByteTokenizer>(), 8, 2);
  EXPECT_THAT(load_first_values(config, *loaded, data).notes, testing::IsEmpty());
  section.require_all_read();
  for (const ParameterPtr& parameter : loaded->parameters()) {
    EXPECT_EQ(parameter->to_dense().to_vector(),
              model->parameter(parameter->name())->to_dense().to_vector())
        << parameter->name();
  }
}

TEST(PresetModels, ErrorsSayWhichPresetTheyAreIn) {
  expect_throws<ConfigError>([] { build("{type: gpt2, n_head: 5, n_layer: 1, n_embd: 16}", {8}); },
                             "; within the preset 'gpt2' at m.yaml:1:1");
}

TEST(Presets, KnowTheImagesThatTheyAreMadeFor) {
  const std::string sized = std::string(kVit).insert(1, "image_size: 16, ");
  EXPECT_NO_THROW(build(sized, {3, 16, 16}));
  expect_throws<ConfigError>(
      [&] {
        build(sized, {3, 8, 8});
      },
      "is 16x16, but the images have shape [3, 8, 8]; give 8x8, or leave it out");
}

TEST(Presets, SayWhichKeyIsWrong) {
  expect_throws<ConfigError>([] { build(kGpt2, {9}); }, "n_positions in gpt2");
  expect_throws<ConfigError>(
      [] {
        build("{type: gpt2, n_layer: 1, n_head: 5, n_embd: 16, n_positions: 8, vocab_size: 11}",
              {8});
      },
      "n_head or num_attention_heads sets the number of heads");
}

TEST(Presets, SayWhatADefaultIsMadeOf) {
  expect_throws<ConfigError>(
      [] {
        build(
            "{type: llama, vocab_size: 11, hidden_size: 16, intermediate_size: 20, "
            "num_hidden_layers: 1, num_attention_heads: 3}",
            {8});
      },
      "the preset 'llama' cannot compute the default of head_dim, $(hidden_size / "
      "num_attention_heads): 16 / 3 is not an integer");
}

TEST(Rotary, HasTheHeadsOfTheAttentionThatFollows) {
  const auto model = [](const std::string& rotary, const std::string& attention) {
    build("[{type: token_embedding, vocab_size: 9, features: 32}, {type: rotary, " + rotary +
              "}, {type: attention, " + attention + "}]",
          {6});
  };
  EXPECT_NO_THROW(model("heads: 2, kv_heads: 1", "heads: 2, kv_heads: 1"));
  EXPECT_NO_THROW(model("heads: 4, kv_heads: 2", "kv_heads: 2, heads: 4"));
  expect_throws<ConfigError>([&] { model("heads: 4, kv_heads: 2", "heads: 2, kv_heads: 1"); },
                             "layer 'attention1' (attention) has 2 heads, and the rotary layer "
                             "before it, 'rotary1', turns 4; give both the same");
  expect_throws<ConfigError>([&] { model("heads: 4, kv_heads: 2", "heads: 4"); },
                             "has 4 kv_heads, and the rotary layer before it, 'rotary1', turns 2");
}

}  // namespace
}  // namespace lacuna::presets_test
