#include "lacuna/framework/model/presets/presets.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "throws.h"

namespace lacuna::presets_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTinyGpt2 =
    "{type: gpt2, vocab_size: 53, n_positions: 24, n_embd: 32, n_layer: 2, n_head: 4}";

Config preset(const std::string& yaml, const ModelContext& context = {}) {
  return expand_preset(parse_yaml(yaml, "m.yaml"), context);
}

void refuses(const std::string& yaml, const std::string& message) {
  expect_throws<ConfigError>([&] { preset(yaml); }, message);
}

void collect(const std::vector<ModelLayer>& layers, std::vector<const ModelLayer*>& into) {
  for (const ModelLayer& layer : layers) {
    into.push_back(&layer);
    collect(layer.layers, into);
  }
}

// A preset's layers, those in groups as well.
class Layers {
 public:
  explicit Layers(const std::string& yaml, const ModelContext& context = {})
      : model_(expand_model(preset(yaml, context))) {
    collect(model_.layers, all_);
  }
  const ModelLayer& at(const std::string& path) const {
    for (const ModelLayer* layer : all_) {
      if (layer->path == path) return *layer;
    }
    throw ConfigError("no layer " + path);
  }
  Config option(const std::string& path, const std::string& key) const {
    return at(path).options.get(key);
  }
  std::vector<std::string> of_type(const std::string& type) const {
    std::vector<std::string> paths;
    for (const ModelLayer* layer : all_) {
      if (layer->type == type) paths.push_back(layer->path);
    }
    return paths;
  }
  /// Paths of layers with names of their own, in their order.
  std::vector<std::string> named() const {
    std::vector<std::string> paths;
    for (const ModelLayer* layer : all_) {
      const bool is_group = layer->kind != ModelLayer::Kind::Plain;
      const bool is_counted = layer->name.starts_with(layer->type);  // as in dropout1
      if (!is_group && !is_counted) paths.push_back(layer->path);
    }
    return paths;
  }

 private:
  ModelLayers model_;
  std::vector<const ModelLayer*> all_;
};

TEST(Presets, AModelSectionIsOneByItsTypeOrFolder) {
  EXPECT_TRUE(is_preset(parse_yaml("{type: gpt2}", "m")));
  EXPECT_TRUE(is_preset(parse_yaml("{from_hf: folder}", "m")));
  EXPECT_FALSE(is_preset(parse_yaml("{layers: [relu]}", "m")));
  EXPECT_FALSE(is_preset(parse_yaml("[{type: gpt2}]", "m")));
  EXPECT_THAT(preset_names(),
              ElementsAre("bert", "cifar_resnet", "distilbert", "gpt2", "llama", "vit"));
  EXPECT_EQ(preset_list().size(), preset_names().size());
}

TEST(Presets, Gpt2HasTheNamesOfItsFiles) {
  const Layers layers(kTinyGpt2);
  std::vector<std::string> names = {"transformer.wte", "transformer.wpe"};
  for (const char* block : {"transformer.h.0.", "transformer.h.1."}) {
    for (const char* name :
         {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"}) {
      names.push_back(std::string(block) + name);
    }
  }
  names.insert(names.end(), {"transformer.ln_f", "lm_head"});
  EXPECT_THAT(layers.named(), ElementsAreArray(names));
  EXPECT_EQ(layers.option("transformer.wte", "vocab_size").text(), "53");
  EXPECT_EQ(layers.option("transformer.wpe", "positions").text(), "24");
  EXPECT_EQ(layers.option("transformer.h.1.attn.c_attn", "out_features").text(), "96");
  EXPECT_EQ(layers.option("transformer.h.1.mlp.c_fc", "out_features").text(), "128");
  EXPECT_EQ(layers.option("transformer.h.0.ln_1", "eps").as<double>(), 1e-5);
  EXPECT_EQ(layers.option("lm_head", "tied_to").text(), "transformer.wte");
  EXPECT_EQ(layers.option("transformer.h.0.gelu1", "approximate").text(), "tanh");
  EXPECT_EQ(layers.option("transformer.h.0.attention1", "heads").text(), "4");
  EXPECT_TRUE(layers.option("transformer.h.0.attention1", "causal").as<bool>());
}

// Two projections a block are added to the stream: 0.02 / √(2 · 2).
TEST(Presets, Gpt2DrawsItsProjectionsSmaller) {
  const Layers layers(kTinyGpt2);
  const auto spread = [&](const std::string& path) {
    const Config init = layers.option(path, "init");
    EXPECT_EQ(init.get("type").text(), "normal") << path;
    return init.get("std").as<double>();
  };
  EXPECT_DOUBLE_EQ(spread("transformer.wte"), 0.02);
  EXPECT_DOUBLE_EQ(spread("transformer.wpe"), 0.02);
  EXPECT_DOUBLE_EQ(spread("transformer.h.0.attn.c_attn"), 0.02);
  EXPECT_DOUBLE_EQ(spread("transformer.h.0.attn.c_proj"), 0.01);
  EXPECT_DOUBLE_EQ(spread("transformer.h.1.mlp.c_fc"), 0.02);
  EXPECT_DOUBLE_EQ(spread("transformer.h.1.mlp.c_proj"), 0.01);
}

TEST(Presets, DropoutsStandWhereTheFamilyHasThemUnlessTheyAreZero) {
  const Layers some(kTinyGpt2);
  EXPECT_EQ(some.of_type("dropout").size(), 5u);
  EXPECT_EQ(some.option("dropout1", "p").as<double>(), 0.1);
  const Layers none("{type: gpt2, n_layer: 2, embd_pdrop: 0, resid_pdrop: 0.0, attn_pdrop: 0.25}");
  EXPECT_THAT(none.of_type("dropout"), ElementsAre());
  EXPECT_EQ(none.option("transformer.h.0.attention1", "dropout").as<double>(), 0.25);
}

TEST(Presets, AnUntiedHeadHasAWeightOfItsOwn) {
  const Layers layers("{type: gpt2, n_layer: 1, vocab_size: 7, tie_word_embeddings: false}");
  EXPECT_TRUE(layers.option("lm_head", "tied_to").is_null());
  EXPECT_EQ(layers.option("lm_head", "out_features").text(), "7");
}

TEST(Presets, BertHasTheNamesOfItsFiles) {
  const std::string sizes =
      "vocab_size: 61, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, "
      "intermediate_size: 64, max_position_embeddings: 20";
  const Layers layers("{type: bert, num_labels: 3, " + sizes + "}");
  std::vector<std::string> names = {
      "bert.embeddings.word_embeddings", "bert.embeddings.position_embeddings",
      "bert.embeddings.token_type_embeddings", "bert.embeddings.LayerNorm"};
  for (const char* block : {"bert.encoder.layer.0.", "bert.encoder.layer.1."}) {
    for (const char* name : {"attention.self.query", "attention.self.key", "attention.self.value",
                             "attention.output.dense", "attention.output.LayerNorm",
                             "intermediate.dense", "output.dense", "output.LayerNorm"}) {
      names.push_back(std::string(block) + name);
    }
  }
  std::vector<std::string> classifier = names, masked = names;
  classifier.insert(classifier.end(), {"bert.pooler.dense", "classifier"});
  masked.insert(masked.end(), {"cls.predictions.transform.dense",
                               "cls.predictions.transform.LayerNorm", "cls.predictions.decoder"});
  EXPECT_THAT(layers.named(), ElementsAreArray(classifier));
  EXPECT_EQ(layers.option("classifier", "out_features").text(), "3");
  EXPECT_EQ(layers.option("bert.encoder.layer.0.gelu1", "approximate").text(), "none");
  const Layers masked_lm("{type: bert, head: masked_lm, " + sizes + "}");
  EXPECT_THAT(masked_lm.named(), ElementsAreArray(masked));
  EXPECT_EQ(masked_lm.option("cls.predictions.decoder", "tied_to").text(),
            "bert.embeddings.word_embeddings");
  EXPECT_THAT(masked_lm.of_type("labelled_tokens"), ElementsAre("labelled_tokens1"));
  const Layers mean("{type: bert, pooling: mean, " + sizes + "}");
  EXPECT_THAT(mean.of_type("mean_pool"), ElementsAre("mean_pool1"));
  EXPECT_THAT(mean.of_type("select_token"), ElementsAre());
  EXPECT_THAT(mean.named(), Not(Contains("bert.pooler.dense")));
}

TEST(Presets, DistilbertHasTheNamesOfItsFiles) {
  const Layers layers("{type: distilbert, dim: 16, n_layers: 1, n_heads: 2, vocab_size: 9}");
  EXPECT_THAT(
      layers.named(),
      ElementsAre(
          "distilbert.embeddings.word_embeddings", "distilbert.embeddings.position_embeddings",
          "distilbert.embeddings.LayerNorm", "distilbert.transformer.layer.0.attention.q_lin",
          "distilbert.transformer.layer.0.attention.k_lin",
          "distilbert.transformer.layer.0.attention.v_lin",
          "distilbert.transformer.layer.0.attention.out_lin",
          "distilbert.transformer.layer.0.sa_layer_norm", "distilbert.transformer.layer.0.ffn.lin1",
          "distilbert.transformer.layer.0.ffn.lin2",
          "distilbert.transformer.layer.0.output_layer_norm", "pre_classifier", "classifier"));
  EXPECT_EQ(layers.option("distilbert.transformer.layer.0.ffn.lin1", "out_features").text(), "64");
  const Layers masked(
      "{type: distilbert, n_layers: 1, head: masked_lm, sinusoidal_pos_embds: true}");
  EXPECT_EQ(masked.option("distilbert.embeddings.position_embeddings", "kind").text(),
            "sinusoidal");
  EXPECT_EQ(masked.option("vocab_projector", "tied_to").text(),
            "distilbert.embeddings.word_embeddings");
}

TEST(Presets, VitHasTheNamesOfItsFiles) {
  const Layers layers(
      "{type: vit, image_size: 16, patch_size: 4, num_channels: 3, hidden_size: 24, "
      "num_hidden_layers: 1, num_attention_heads: 3, intermediate_size: 48, qkv_bias: false, "
      "num_labels: 5}");
  EXPECT_THAT(
      layers.named(),
      ElementsAre("vit.embeddings.patch_embeddings.projection", "vit.embeddings.cls_token",
                  "vit.embeddings.position_embeddings", "vit.encoder.layer.0.layernorm_before",
                  "vit.encoder.layer.0.attention.attention.query",
                  "vit.encoder.layer.0.attention.attention.key",
                  "vit.encoder.layer.0.attention.attention.value",
                  "vit.encoder.layer.0.attention.output.dense",
                  "vit.encoder.layer.0.layernorm_after", "vit.encoder.layer.0.intermediate.dense",
                  "vit.encoder.layer.0.output.dense", "vit.layernorm", "classifier"));
  const std::string query = "vit.encoder.layer.0.attention.attention.query";
  EXPECT_FALSE(layers.option(query, "bias").as<bool>());
  EXPECT_EQ(layers.option("vit.embeddings.position_embeddings", "positions").text(), "17");
  EXPECT_EQ(layers.option("vit.embeddings.patch_embeddings.projection", "channels").text(), "3");
  refuses("{type: vit, image_size: 30}",
          "m.yaml:1:25: image_size: images of 30 × 30 cannot be cut into patches of 16 × 16");
  EXPECT_EQ(layers.option(query, "init").get("type").text(), "truncated_normal");
  EXPECT_EQ(layers.option("vit.layernorm", "eps").as<double>(), 1e-12);
  EXPECT_THAT(layers.of_type("dropout"), ElementsAre());
}

TEST(Presets, LlamaSharesKeysAndValuesAmongHeads) {
  const Layers layers(
      "{type: llama, vocab_size: 11, hidden_size: 32, intermediate_size: 48, "
      "num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2}");
  EXPECT_THAT(layers.named(),
              ElementsAre("model.embed_tokens", "model.layers.0.input_layernorm",
                          "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj",
                          "model.layers.0.self_attn.v_proj", "model.layers.0.self_attn.o_proj",
                          "model.layers.0.post_attention_layernorm", "model.layers.0.mlp.gate_proj",
                          "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj",
                          "model.norm", "lm_head"));
  EXPECT_EQ(layers.option("model.layers.0.self_attn.q_proj", "out_features").text(), "32");
  EXPECT_EQ(layers.option("model.layers.0.self_attn.k_proj", "out_features").text(), "16");
  EXPECT_FALSE(layers.option("model.layers.0.self_attn.v_proj", "bias").as<bool>());
  EXPECT_EQ(layers.option("model.layers.0.attention1", "kv_heads").text(), "2");
  EXPECT_EQ(layers.option("model.layers.0.rotary1", "kv_heads").text(), "2");
  EXPECT_EQ(layers.option("model.layers.0.rotary1", "base").as<double>(), 10000.0);
  refuses("{type: llama, hidden_size: 32, num_attention_heads: 4, head_dim: 16}",
          "m.yaml:1:66: head_dim: 4 heads of 16 features must be the hidden_size, 32");
}

TEST(Presets, CifarResnetIsBuiltOfTemplates) {
  const Layers layers("{type: cifar_resnet, depth: 14, width: 8}");
  EXPECT_EQ(layers.of_type("basic_block").size(), 6u);
  EXPECT_EQ(layers.option("layer3.1.conv2", "out_channels").text(), "32");
  EXPECT_EQ(layers.option("layer2.0.conv1", "stride").text(), "2");
  refuses("{type: cifar_resnet, depth: 18}", "m.yaml:1:29: depth: expected 6 n + 2");
}

TEST(Presets, SizesThatAreLeftOutAreTheData) {
  const ModelContext data{.vocabulary_size = 65, .num_classes = 4};
  const Layers text("{type: gpt2, n_layer: 1}", data);
  EXPECT_EQ(text.option("transformer.wte", "vocab_size").text(), "65");
  const Layers given("{type: gpt2, n_layer: 1, vocab_size: 100}", data);
  EXPECT_EQ(given.option("transformer.wte", "vocab_size").text(), "100");
  const Layers none("{type: gpt2, n_layer: 1}");
  EXPECT_EQ(none.option("transformer.wte", "vocab_size").text(), "50257");
  const std::string small = "{type: bert, num_hidden_layers: 1";
  EXPECT_EQ(Layers(small + "}", data).option("classifier", "out_features").text(), "4");
  EXPECT_EQ(Layers(small + "}").option("classifier", "out_features").text(), "2");
  EXPECT_EQ(Layers(small + ", id2label: {0: a, 1: b, 2: c}}", data)
                .option("classifier", "out_features")
                .text(),
            "3");
}

// A run is known by its configuration alone.
TEST(Presets, TheSectionIsCompletedSoThatItMeansTheSameWithoutTheData) {
  const Config section = parse_yaml("{type: bert, num_hidden_layers: 1}", "m.yaml");
  const Config first = expand_preset(section, {.vocabulary_size = 65, .num_classes = 4});
  EXPECT_EQ(section.get("vocab_size").text(), "65");
  EXPECT_EQ(section.get("num_labels").text(), "4");
  EXPECT_EQ(section.get("layer_norm_eps").as<double>(), 1e-12);
  section.require_all_read();
  const Config again = parse_yaml(section.to_yaml(), "saved.yaml");
  EXPECT_EQ(expand_preset(again), first);
}

TEST(Presets, RefuseKeysThatTheyDoNotHave) {
  refuses(
      "{type: gpt2, n_layers: 2}",
      "m.yaml:1:24: n_layers: the preset 'gpt2' has no key 'n_layers'; did you mean 'n_layer'?");
  refuses("{type: bert, hidden: 2, zzzzzzzzzzzzzzzzzzzzzzzzzzzzz: 1}", "no key 'hidden'");
  refuses("{type: gpt3}", "m.yaml:1:8: type: unknown preset 'gpt3'; did you mean 'gpt2'?");
  refuses("{type: gpt2, layers: [relu]}", "m.yaml:1:22: layers: a model is a preset (`type`) or");
  refuses("{type: gpt2, define: {}}", "a model is a preset (`type`) or has define");
}

TEST(Presets, RefuseValuesThatTheyCannotFollow) {
  refuses("{type: gpt2, scale_attn_weights: false}",
          "m.yaml:1:34: scale_attn_weights: the preset 'gpt2' only supports scale_attn_weights: "
          "true, found false");
  refuses("{type: llama, rope_scaling: {type: linear}}", "rope_scaling: null, found a map");
  refuses("{type: bert, hidden_act: gelu_fast_x}",
          "m.yaml:1:26: hidden_act: unknown hidden_act 'gelu_fast_x' of the preset 'bert'");
  refuses("{type: bert, head: lm}", "m.yaml:1:20: head: unknown head 'lm' of the preset 'bert'");
  refuses("{type: bert, pooling: max}", "unknown pooling 'max'");
  refuses("{type: gpt2, n_embd: wide}", "'n_embd' is 'wide', which is not a number");
  refuses("{type: gpt2, initializer_range: small}",
          "m.yaml:1:33: initializer_range: expected a num");
}

TEST(Presets, PassOverWhatSaysNothingOfTheModel) {
  const Config section = parse_yaml(
      "{type: gpt2, n_layer: 1, architectures: [GPT2LMHeadModel], torch_dtype: float32, n_ctx: 24, "
      "transformers_version: 4.1.0, task_specific_params: {a: {b: 1}}, use_cache: true, "
      "init_from: x, frozen: '*.bias'}",
      "m.yaml");
  EXPECT_EQ(expand_preset(section), expand_preset(parse_yaml("{type: gpt2, n_layer: 1}", "m")));
  // These two are for others to read.
  expect_throws<ConfigError>([&] { section.require_all_read(); }, "init_from");
}

}  // namespace
}  // namespace lacuna::presets_test
