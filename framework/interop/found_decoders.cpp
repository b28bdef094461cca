// GPT-2, Llama and the residual networks for CIFAR by their parameters' names.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "lacuna/framework/interop/family_names.hpp"

namespace lacuna {
namespace {

// Whether a head of its own is in the file, with other values than the tokens' table.
bool has_own_head(const FamilyNames& names, const char* table) {
  return names.has_head("lm_head.weight") && !names.are_equal("lm_head.weight", table);
}

constexpr std::array<std::string_view, 12> kGpt2Layer = {
    "ln_1.weight",        "ln_1.bias",        "attn.c_attn.weight", "attn.c_attn.bias",
    "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight",        "ln_2.bias",
    "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};

std::string gpt2_data(const FamilyNames& names, int64_t vocabulary, int64_t positions) {
  std::string data = fmt::format("  type: text\n  path: {}        # a text file\n", kFillIn);
  if (names.has_file("vocab.json") || vocabulary > 10000) {
    data += fmt::format("  tokenizer: bpe\n  vocab: {}\n  merges: {}\n",
                        names.path_of("vocab.json"), names.path_of("merges.txt"));
  } else {
    const bool is_bytes = vocabulary == 256;
    data += fmt::format(
        "  tokenizer: {}   # of {} tokens\n{}", is_bytes ? "bytes" : "characters", vocabulary,
        is_bytes ? "" : "  unk: false   # true, if one of the model's tokens is [UNK]\n");
  }
  return data + key_line("context", std::min<int64_t>(positions, 256));
}

constexpr std::array<std::string_view, 16> kLlamaLayer = {
    "input_layernorm.weight",  "self_attn.q_proj.weight",
    "self_attn.k_proj.weight", "self_attn.v_proj.weight",
    "self_attn.o_proj.weight", "self_attn.q_proj.bias",
    "self_attn.k_proj.bias",   "self_attn.v_proj.bias",
    "self_attn.o_proj.bias",   "post_attention_layernorm.weight",
    "mlp.gate_proj.weight",    "mlp.up_proj.weight",
    "mlp.down_proj.weight",    "mlp.gate_proj.bias",
    "mlp.up_proj.bias",        "mlp.down_proj.bias"};

constexpr std::array<std::string_view, 10> kResNetBlock = {
    "conv1.weight",    "conv2.weight", "bn1.weight", "bn1.bias",         "bn1.running_mean",
    "bn1.running_var", "bn2.weight",   "bn2.bias",   "bn2.running_mean", "bn2.running_var"};

// ResNet-20 and its like have three stages of as many blocks, and nothing in their shortcuts.

}  // namespace

std::optional<FoundModel> find_gpt2(FamilyNames names) {
  if (!names.has_anchor("h.0.attn.c_attn.weight", "transformer.")) return {};
  const int64_t layers = names.count_layers("h", kGpt2Layer);
  const auto words = names.trunk("wte.weight", 2), places = names.trunk("wpe.weight", 2),
             wide = names.trunk("h.0.mlp.c_fc.bias", 1);
  if (layers == 0 || !words || !places || !wide) return {};
  std::string keys = key_line("vocab_size", (*words)[0]) + key_line("n_positions", (*places)[0]) +
                     key_line("n_embd", (*words)[1]) + key_line("n_layer", layers) +
                     heads_line("n_head", (*words)[1]);
  if ((*wide)[0] != 4 * (*words)[1]) keys += key_line("n_inner", (*wide)[0]);
  if (has_own_head(names, "wte.weight")) keys += "  tie_word_embeddings: false\n";
  return FoundModel{.what = family_in_words("gpt2", layers, (*words)[1]),
                    .data = gpt2_data(names, (*words)[0], (*places)[0]),
                    .model = names.section("gpt2", keys, "")};
}

std::optional<FoundModel> find_llama(FamilyNames names) {
  if (!names.has_anchor("layers.0.self_attn.q_proj.weight", "model.")) return {};
  const int64_t layers = names.count_layers("layers", kLlamaLayer);
  const auto words = names.trunk("embed_tokens.weight", 2),
             query = names.trunk("layers.0.self_attn.q_proj.weight", 2),
             keys_of = names.trunk("layers.0.self_attn.k_proj.weight", 2),
             wide = names.trunk("layers.0.mlp.gate_proj.weight", 2);
  if (layers == 0 || !words || !query || !keys_of || !wide || (*query)[0] != (*words)[1]) return {};
  const bool has_bias = names.has_trunk("layers.0.self_attn.q_proj.bias");
  if (has_bias != names.has_trunk("layers.0.self_attn.o_proj.bias")) return {};
  const int64_t features = (*words)[1], of_keys = (*keys_of)[0];
  const auto fits = [&](int64_t size) { return features % size == 0 && of_keys % size == 0; };
  const int64_t of_head = features >= 4096 && fits(128) ? 128 : fits(64) ? 64 : of_keys;
  if (!fits(of_head)) return {};
  std::string keys = key_line("vocab_size", (*words)[0]) + key_line("hidden_size", features) +
                     key_line("intermediate_size", (*wide)[0]) +
                     key_line("num_hidden_layers", layers) +
                     key_line("num_attention_heads", features / of_head, kNotInFile) +
                     key_line("num_key_value_heads", of_keys / of_head, kNotInFile) +
                     fmt::format("  rope_theta: 10000.0{}\n", kNotInFile);
  if (has_bias) keys += "  attention_bias: true\n";
  if (names.has_trunk("layers.0.mlp.gate_proj.bias")) keys += "  mlp_bias: true\n";
  if (!has_own_head(names, "embed_tokens.weight")) keys += "  tie_word_embeddings: true\n";
  return FoundModel{
      .what = family_in_words("llama", layers, features),
      .data = fmt::format("  type: tokens\n  dir: {}         # holds train.bin, 16-bit tokens\n",
                          kFillIn) +
              key_line("vocab_size", (*words)[0]) + key_line("context", 256),
      .model = names.section("llama", keys, "")};
}

std::optional<FoundModel> find_cifar_resnet(FamilyNames names) {
  if (!names.has_anchor("layer3.0.conv1.weight", "") || names.has_trunk("layer4.0.conv1.weight")) {
    return {};
  }
  const int64_t blocks = names.count_layers("layer1", kResNetBlock);
  const auto first = names.trunk("conv1.weight", 4);
  const bool is_even = blocks > 0 && names.count_layers("layer2", kResNetBlock) == blocks &&
                       names.count_layers("layer3", kResNetBlock) == blocks;
  auto labels = names.trunk("linear.weight", 2);
  if (!labels) labels = names.trunk("fc.weight", 2);
  if (!is_even || !first || (*first)[2] != 3 || !labels || (*labels)[1] != 4 * (*first)[0]) {
    return {};
  }
  if (names.has_trunk("fc.weight")) names.rename("fc.*", "linear.*");
  const std::string keys = key_line("depth", 6 * blocks + 2) + key_line("width", (*first)[0]);
  const std::string more = key_line("num_labels", (*labels)[0]);
  const bool is_cifar = (*labels)[0] == 10 || (*labels)[0] == 100;
  const std::string data =
      is_cifar ? fmt::format("  type: cifar{}\n  dir: {}         # the binary files\n",
                             (*labels)[0], kFillIn)
               : fmt::format(
                     "  type: image_folder\n  dir: {}         # holds train/ with a folder for "
                     "each class\n  size: 32\n",
                     kFillIn);
  return FoundModel{
      .what = fmt::format("a cifar_resnet of depth {} and width {}", 6 * blocks + 2, (*first)[0]),
      .data = data + fmt::format("  normalize: {{mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, "
                                 "0.225]}}{}\n",
                                 kNotInFile),
      .model = names.section("cifar_resnet", keys, more)};
}

}  // namespace lacuna
