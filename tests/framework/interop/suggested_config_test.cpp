// Configurations made from names and shapes: of each preset and of plain stacks, from which the
// same model is built; and what is listed of models that are none.
#include "lacuna/framework/interop/suggested_config.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/interop/runs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/stack_parts.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::suggested_config_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Renaming = std::function<std::string(const std::string&)>;

// The model's arrays under other names; those that become "" are left out.
std::string write_model(
    const TemporaryFolder& folder, Module& model,
    const Renaming& renamed = [](const std::string& name) { return name; },
    const std::string& file = "m.safetensors") {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const ParameterPtr& p : model.parameters()) {
    if (const std::string name = renamed(p->name()); !name.empty()) {
      tensors.emplace_back(name, p->to_dense());
    }
  }
  for (const auto& [name, buffer] : model.buffers()) {
    if (const std::string other = renamed(name); !other.empty()) {
      tensors.emplace_back(other, *buffer);
    }
  }
  write_safetensors(folder / file, tensors);
  return folder / file;
}

// The model that is suggested has the file's values after loading, as `lacuna import` loads them.
void expect_same_model(const std::string& file, const Module& original, const Shape& example) {
  const SuggestedConfig suggested = suggest_config(file);
  ASSERT_TRUE(suggested.yaml) << suggested.reason;
  SCOPED_TRACE(*suggested.yaml);
  Config config = parse_yaml(*suggested.yaml, "suggested.yaml");
  WeightNames names;
  const Config source = config.peek("model.init_from");
  for (const Config& rule : source.is_map() && source.has("rename") ? source.get("rename").items()
                                                                    : std::vector<Config>()) {
    names.rename.push_back({rule.at("from").text(), rule.at("to").text()});
  }
  if (source.is_map() && source.has("skip")) {
    names.skip = source.get("skip").as<std::vector<std::string>>();
  }
  if (source.is_map()) config.get("model").erase("init_from");
  register_builtins();
  const auto model = build_model(model_layers(config.at("model"), {.num_classes = 3}), example);
  load_weights(file, *model, names);
  for (const ParameterPtr& p : original.parameters()) {
    const auto same = model->parameter(p->name());
    ASSERT_NE(same, nullptr) << p->name();
    const bool is_skipped = p->name().starts_with("classifier") && !names.skip.empty();
    if (is_skipped) continue;
    EXPECT_EQ(same->to_dense().to_vector(), p->to_dense().to_vector()) << p->name();
  }
  EXPECT_EQ(model->parameters().size(), original.parameters().size());
}

struct Family {
  std::string name, yaml, without, wrapper, head;  // prefix taken away, put before; left out
};

const Shape kTokens{12};
const std::string kBert =
    "type: bert, vocab_size: 20, hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 1, "
    "intermediate_size: 24, max_position_embeddings: 12, num_labels: 3";
const std::string kDistil =
    "type: distilbert, vocab_size: 20, dim: 64, hidden_dim: 24, n_layers: 2, n_heads: 1, "
    "max_position_embeddings: 12, num_labels: 3";
const std::string kGpt2 =
    "type: gpt2, vocab_size: 20, n_positions: 12, n_embd: 64, n_layer: 2, n_head: 1";
const std::string kLlama =
    "type: llama, vocab_size: 20, hidden_size: 128, intermediate_size: 48, num_hidden_layers: 2, "
    "num_attention_heads: 2, num_key_value_heads: 1";
const std::string kVit =
    "type: vit, image_size: 16, num_channels: 3, patch_size: 8, hidden_size: 64, "
    "num_hidden_layers: 2, num_attention_heads: 1, intermediate_size: 24, num_labels: 3";

class Families : public testing::TestWithParam<Family> {};

TEST_P(Families, AreKnownByTheirNames) {
  const Family& family = GetParam();
  const TemporaryFolder folder;
  const bool is_image = family.yaml.find("vit") != std::string::npos ||
                        family.yaml.find("resnet") != std::string::npos;
  const Shape example = !is_image                                      ? kTokens
                        : family.yaml.find("vit") != std::string::npos ? Shape{3, 16, 16}
                                                                       : Shape{3, 32, 32};
  const auto model = build_from("{" + family.yaml + "}", example);
  const std::string file = write_model(folder, *model, [&](const std::string& name) {
    if (!family.head.empty() && name.starts_with(family.head)) return std::string();
    const bool has_prefix = !family.without.empty() && name.starts_with(family.without);
    return family.wrapper + (has_prefix ? name.substr(family.without.size()) : name);
  });
  expect_same_model(file, *model, example);
}

INSTANTIATE_TEST_SUITE_P(
    All, Families,
    testing::Values(
        Family{"bert", kBert, "", "", ""},
        Family{"bert_without_prefix_and_head", kBert, "bert.", "", "classifier"},
        Family{"bert_wrapped", kBert, "", "module.", ""},
        Family{"bert_masked", kBert + ", head: masked_lm", "", "", ""},
        Family{"bert_untied", kBert + ", head: masked_lm, tie_word_embeddings: false", "", "", ""},
        Family{"bert_mean", kBert + ", pooling: mean", "", "", ""},
        Family{"distilbert", kDistil, "", "", ""},
        Family{"distilbert_base", kDistil, "distilbert.", "", "classifier"},
        Family{"distilbert_masked", kDistil + ", head: masked_lm", "", "", ""},
        Family{"gpt2", kGpt2, "", "", ""},
        Family{"gpt2_without_prefix", kGpt2, "transformer.", "", ""},
        Family{"gpt2_untied", kGpt2 + ", tie_word_embeddings: false", "", "", ""},
        Family{"gpt2_narrow", kGpt2 + ", n_inner: 32", "", "_orig_mod.", ""},
        Family{"llama", kLlama, "", "", ""},
        Family{"llama_tied", kLlama + ", tie_word_embeddings: true", "", "", ""},
        Family{"llama_biased", kLlama + ", attention_bias: true, mlp_bias: true", "", "", ""},
        Family{"vit", kVit, "", "", ""}, Family{"vit_base", kVit, "vit.", "", "classifier"},
        Family{"vit_unbiased", kVit + ", qkv_bias: false", "", "", ""},
        Family{"resnet8", "type: cifar_resnet, depth: 8, num_labels: 3", "", "", ""},
        Family{"resnet14", "type: cifar_resnet, depth: 14, width: 4", "", "module.", ""}),
    [](const auto& given) { return given.param.name; });

struct Stack {
  std::string name, yaml;
  Shape example;
};

class Stacks : public testing::TestWithParam<Stack> {};

TEST_P(Stacks, AreBuiltOfTheirShapes) {
  const TemporaryFolder folder;
  const auto model = build_from(GetParam().yaml, GetParam().example);
  expect_same_model(write_model(folder, *model), *model, GetParam().example);
}

INSTANTIATE_TEST_SUITE_P(
    All, Stacks,
    testing::Values(
        Stack{"linear",
              "[flatten, {type: linear, name: fc1, out_features: 30}, relu, "
              "{type: linear, name: fc2, out_features: 10}]",
              {28, 28}},
        Stack{"linear_by_shapes",
              "[{type: linear, name: enter, out_features: 30}, relu, {type: linear, name: z.0, "
              "out_features: 20, bias: false}, relu, {type: linear, name: leave, out_features: 3}]",
              {7}},
        Stack{"ten_and_more",
              "[{type: linear, name: l2, out_features: 6}, relu, {type: linear, name: l9, "
              "out_features: 6}, relu, {type: linear, name: l10, out_features: 6}, relu, {type: "
              "linear, name: l11, out_features: 3}]",
              {6}},
        Stack{
            "sequence_with_norms",
            "[{type: linear, name: net.0, out_features: 6}, {type: layer_norm, name: net.1}, relu, "
            "{type: linear, name: net.3, out_features: 5, bias: false}, {type: batch_norm, name: "
            "net.4}, relu, {type: linear, name: net.6, out_features: 2}]",
            {9}},
        Stack{
            "norm_first",
            "[{type: batch_norm, name: net.0}, {type: linear, name: net.1, out_features: 6}, relu, "
            "{type: rms_norm, name: net.3}, {type: linear, name: net.4, out_features: 1}]",
            {9}},
        Stack{"named_norms",
              "[{type: linear, name: fc1, out_features: 6}, {type: batch_norm, name: bn1}, relu, "
              "{type: linear, name: fc2, out_features: 5}, {type: batch_norm, name: bn2}, relu, "
              "{type: linear, name: fc3, out_features: 2}]",
              {9}},
        Stack{
            "lenet",
            "[{type: conv2d, name: conv1, out_channels: 6, kernel: 5, padding: 2}, relu, {type: "
            "max_pool, kernel: 2}, {type: conv2d, name: conv2, out_channels: 16, kernel: 5}, relu, "
            "{type: max_pool, kernel: 2}, flatten, {type: linear, name: fc1, out_features: 20}, "
            "relu, {type: linear, name: fc2, out_features: 10}]",
            {1, 28, 28}},
        Stack{
            "vgg",
            "[{type: conv2d, name: features.0, out_channels: 4, kernel: 3, padding: 1, bias: "
            "false}, {type: batch_norm, name: features.1}, relu, {type: conv2d, name: features.3, "
            "out_channels: 4, kernel: 3, padding: 1}, relu, {type: max_pool, kernel: 2}, {type: "
            "conv2d, name: features.6, out_channels: 8, kernel: 3, padding: 1}, relu, {type: "
            "max_pool, kernel: 2}, flatten, {type: linear, name: classifier.0, out_features: 12}, "
            "relu, {type: linear, name: classifier.3, out_features: 5}]",
            {3, 32, 32}},
        Stack{"depthwise",
              "[{type: conv2d, name: a1, out_channels: 4, kernel: 3, padding: 1}, relu, {type: "
              "conv2d, name: a2, out_channels: 4, kernel: 3, padding: 1, groups: 4}, relu, "
              "global_average_pool, {type: linear, name: head, out_features: 5}]",
              {3, 32, 32}}),
    [](const auto& given) { return given.param.name; });

TEST(SuggestedConfig, TakesTheKeysOfAConfigJson) {
  const TemporaryFolder folder;
  const auto model = build_from("{" + kBert + "}", kTokens);
  write_model(folder, *model);
  folder.write("config.json", R"({"model_type": "bert", "num_attention_heads": 4})");
  folder.write("vocab.txt", "[PAD]\n");
  const SuggestedConfig suggested = suggest_config(folder / "m.safetensors");
  ASSERT_TRUE(suggested.yaml);
  const Config config = parse_yaml(*suggested.yaml, "s.yaml");
  EXPECT_EQ(config.peek("model.from_hf").text(), folder.path());
  EXPECT_EQ(config.peek("model.num_labels").as<int64_t>(), 3);
  EXPECT_TRUE(config.peek("model.type").is_null());
  EXPECT_EQ(config.peek("data.vocab").text(), folder / "vocab.txt");
  EXPECT_EQ(config.peek("data.train").text(), "FILL_IN");
}

TEST(SuggestedConfig, TakesNamesAndCaseOfAFolder) {
  const TemporaryFolder folder;
  const auto model = build_from("{" + kBert + "}", kTokens);
  write_model(folder, *model);
  folder.write("config.json",
               R"({"model_type": "bert", "id2label": {"0": "yes", "2": "no", "1": "so so"}})");
  folder.write("vocab.txt", "[PAD]\nthe\nThe\n");
  const auto data = [&] {
    return parse_yaml(*suggest_config(folder / "m.safetensors").yaml, "s.yaml").at("data");
  };
  EXPECT_EQ(data().at("class_names").as<std::vector<std::string>>(),
            (std::vector<std::string>{"yes", "so so", "no"}));
  EXPECT_EQ(data().at("lower_case").text(), "false");
  folder.write("tokenizer_config.json", R"({"do_lower_case": true})");
  folder.write("config.json", R"({"model_type": "bert", "id2label": {"0": "LABEL_0"}})");
  EXPECT_FALSE(data().has("lower_case"));
  EXPECT_FALSE(data().has("class_names"));
  folder.write("config.json", R"({"model_type": "xlm-roberta"})");
  expect_throws<ConfigError>([&] { data(); }, "there is no preset for the family 'xlm-roberta'");
}

TEST(SuggestedConfig, ListsWhatItDoesNotKnow) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<std::pair<std::string, Tensor>>& tensors) {
    write_safetensors(folder / "x.safetensors", tensors);
    SuggestedConfig suggested = suggest_config(folder / "x.safetensors");
    EXPECT_FALSE(suggested.yaml) << *suggested.yaml;
    return suggested;
  };
  SuggestedConfig found = refused({{"blocks.0.in_proj_weight", Tensor::zeros({12, 4})},
                                   {"blocks.1.in_proj_weight", Tensor::zeros({12, 4})},
                                   {"blocks.10.in_proj_weight", Tensor::zeros({12, 4})},
                                   {"head.weight", Tensor::zeros({3, 4})}});
  EXPECT_THAT(found.reason,
              HasSubstr("it is not one of the presets (bert, cifar_resnet, distilbert, gpt2, "
                        "llama, vit), nor a plain stack: 'blocks.0.in_proj_weight' [12, 4] does "
                        "not belong to a linear layer, convolution or norm"));
  EXPECT_THAT(found.found, ElementsAre("blocks.0.in_proj_weight [12, 4], and 1 more like it",
                                       "blocks.10.in_proj_weight [12, 4]", "head.weight [3, 4]"));
  found = refused({{"a.weight", Tensor::zeros({3, 4})}, {"b.weight", Tensor::zeros({3, 5})}});
  EXPECT_THAT(found.reason, HasSubstr("no order of its layers makes all outputs fit"));
  found = refused({{"a.weight", Tensor::zeros({3, 4})}, {"n.weight", Tensor::zeros({7})}});
  EXPECT_THAT(found.reason, HasSubstr("which layer the norm 'n' [7] belongs to"));
  found = refused({{"c.weight", Tensor::zeros({3, 4, 3, 3})}});
  EXPECT_THAT(found.reason, HasSubstr("convolutions and no linear layer after them"));
  found = refused({{"c.weight", Tensor::zeros({3, 4, 3, 3})}, {"f.weight", Tensor::zeros({2, 6})}});
  EXPECT_THAT(found.reason, HasSubstr("no common image size gives 'f' its 6 inputs"));
  found = refused({{"n.weight", Tensor::zeros({7})}});
  EXPECT_THAT(found.reason, HasSubstr("there is no linear layer or convolution"));
  found = refused({{"alone", Tensor::zeros({7})}});
  EXPECT_THAT(found.reason, HasSubstr("'alone' [7] does not belong to a linear layer"));
}

// A layer with something that the preset's has not.
TEST(SuggestedConfig, TakesNoOtherFamilyForAPreset) {
  const TemporaryFolder folder;
  const auto model = build_from("{" + kLlama + "}", kTokens);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const ParameterPtr& p : model->parameters()) tensors.emplace_back(p->name(), p->to_dense());
  tensors.emplace_back("model.layers.0.self_attn.q_norm.weight", Tensor::zeros({64}));
  write_safetensors(folder / "x.safetensors", tensors);
  EXPECT_FALSE(suggest_config(folder / "x.safetensors").yaml);
}

TEST(SuggestedConfig, NamesItselfByTheFile) {
  EXPECT_EQ(suggested_name("models/bert.safetensors"), "bert.yaml");
  EXPECT_EQ(suggested_name("models/bert"), "bert.yaml");
  EXPECT_EQ(suggested_name("models/bert/"), "bert.yaml");
  EXPECT_EQ(suggested_name("a/model.safetensors.index.json"), "model.yaml");
  EXPECT_EQ(suggested_name("w.npz"), "w.yaml");
}

TEST(SuggestedConfig, RefusesWhatIsNoFileOfWeights) {
  const TemporaryFolder folder;
  expect_throws<CheckpointError>([&] { suggest_config(folder / "nothing.bin"); },
                                 "No such file or directory");
  expect_throws<CheckpointError>([&] { suggest_config(folder / "nothing"); },
                                 "no such file or folder: '");
  expect_throws<CheckpointError>([&] { suggest_config(folder.write("w.txt", "weights")); },
                                 "is not a .safetensors, .npz or .npy file");
  expect_throws<CheckpointError>([&] { suggest_config(folder.write("w.pt", "\x80\x02}q.")); },
                                 "is a pickle");
  // What is refused with a configuration is refused in the same words without one.
  expect_throws<CheckpointError>(
      [&] { suggest_config(folder.write("m.gguf", std::string("GGUF\3\0\0\0", 8))); },
      "is a GGUF model");
}

TEST(StackParts, ComeInTheirNaturalOrder) {
  EXPECT_TRUE(is_before("l2", "l10"));
  EXPECT_FALSE(is_before("l10", "l2"));
  EXPECT_TRUE(is_before("a.09", "a.10"));
  EXPECT_FALSE(is_before("a", "a"));
  EXPECT_EQ(numbers_in("block12.conv3"), "12 3 ");
  EXPECT_EQ(place_in_sequence("features.10"), 10);
  EXPECT_EQ(place_in_sequence("3"), 3);
  EXPECT_EQ(place_in_sequence("fc3"), -1);
}

}  // namespace
}  // namespace lacuna::suggested_config_test
