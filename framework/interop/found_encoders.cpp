// BERT, DistilBERT and ViT by their parameters' names.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "lacuna/framework/interop/family_names.hpp"

namespace lacuna {
namespace {

std::string labels_key(const std::optional<Shape>& classifier) {
  return classifier ? key_line("num_labels", (*classifier)[0]) : "";
}

// Sentences for a classifier, a text for a masked language model.
std::string encoder_data(const FamilyNames& names, bool is_masked_lm, int64_t positions) {
  const std::string vocab = names.path_of("vocab.txt");
  const char* lower_case = names.is_cased() ? "  lower_case: false\n" : "";
  const int64_t length = std::min<int64_t>(positions, 128);
  if (is_masked_lm) {
    return fmt::format(
        "  type: text\n  path: {}        # a text file\n  tokenizer: wordpiece\n  vocab: {}       "
        "# "
        "vocab.txt of the model\n{}  context: {}\n  mask_fraction: 0.15\n",
        kFillIn, vocab, lower_case, length);
  }
  const std::vector<std::string> labels = names.label_names();
  return fmt::format(
      "  type: labelled_text\n  train: {}       # lines of a label, a tab and a sentence, or a CSV "
      "file\n  tokenizer: wordpiece\n  vocab: {}       # vocab.txt of the model\n{}{}  max_length: "
      "{}\n",
      kFillIn, vocab, lower_case,
      labels.empty() ? "" : "  class_names: " + Config::from_value(labels).to_json() + "\n",
      length);
}

constexpr std::array<std::string_view, 16> kBertLayer = {"attention.self.query.weight",
                                                         "attention.self.query.bias",
                                                         "attention.self.key.weight",
                                                         "attention.self.key.bias",
                                                         "attention.self.value.weight",
                                                         "attention.self.value.bias",
                                                         "attention.output.dense.weight",
                                                         "attention.output.dense.bias",
                                                         "attention.output.LayerNorm.weight",
                                                         "attention.output.LayerNorm.bias",
                                                         "intermediate.dense.weight",
                                                         "intermediate.dense.bias",
                                                         "output.dense.weight",
                                                         "output.dense.bias",
                                                         "output.LayerNorm.weight",
                                                         "output.LayerNorm.bias"};
constexpr std::array<std::string_view, 4> kOldNorms = {
    "attention.output.LayerNorm.gamma", "attention.output.LayerNorm.beta", "output.LayerNorm.gamma",
    "output.LayerNorm.beta"};

constexpr std::array<std::string_view, 16> kDistilLayer = {
    "attention.q_lin.weight",   "attention.q_lin.bias",   "attention.k_lin.weight",
    "attention.k_lin.bias",     "attention.v_lin.weight", "attention.v_lin.bias",
    "attention.out_lin.weight", "attention.out_lin.bias", "sa_layer_norm.weight",
    "sa_layer_norm.bias",       "ffn.lin1.weight",        "ffn.lin1.bias",
    "ffn.lin2.weight",          "ffn.lin2.bias",          "output_layer_norm.weight",
    "output_layer_norm.bias"};

constexpr std::array<std::string_view, 16> kVitLayer = {"layernorm_before.weight",
                                                        "layernorm_before.bias",
                                                        "attention.attention.query.weight",
                                                        "attention.attention.query.bias",
                                                        "attention.attention.key.weight",
                                                        "attention.attention.key.bias",
                                                        "attention.attention.value.weight",
                                                        "attention.attention.value.bias",
                                                        "attention.output.dense.weight",
                                                        "attention.output.dense.bias",
                                                        "layernorm_after.weight",
                                                        "layernorm_after.bias",
                                                        "intermediate.dense.weight",
                                                        "intermediate.dense.bias",
                                                        "output.dense.weight",
                                                        "output.dense.bias"};

}  // namespace

std::optional<FoundModel> find_bert(FamilyNames names) {
  if (!names.has_anchor("encoder.layer.0.attention.self.query.weight", "bert.")) return {};
  std::vector<std::string_view> known(kBertLayer.begin(), kBertLayer.end());
  known.insert(known.end(), kOldNorms.begin(), kOldNorms.end());
  const int64_t layers = names.count_layers("encoder.layer", known);
  const auto words = names.trunk("embeddings.word_embeddings.weight", 2),
             places = names.trunk("embeddings.position_embeddings.weight", 2),
             types = names.trunk("embeddings.token_type_embeddings.weight", 2),
             wide = names.trunk("encoder.layer.0.intermediate.dense.weight", 2);
  if (layers == 0 || !words || !places || !types || !wide) return {};
  const auto classifier = names.head("classifier.weight", 2);
  const bool has_pooler = names.has_trunk("pooler.dense.weight"),
             is_masked_lm = !classifier && names.has_head("cls.predictions.transform.dense.weight");
  std::string keys =
      key_line("vocab_size", (*words)[0]) + key_line("hidden_size", (*words)[1]) +
      key_line("num_hidden_layers", layers) + heads_line("num_attention_heads", (*words)[1]) +
      key_line("intermediate_size", (*wide)[0]) +
      key_line("max_position_embeddings", (*places)[0]) + key_line("type_vocab_size", (*types)[0]);
  std::string more = labels_key(classifier);
  if (is_masked_lm) {
    more = "  head: masked_lm\n";
    const char* decoder = "cls.predictions.decoder.weight";
    if (names.has_head(decoder) && !names.are_equal(decoder, "embeddings.word_embeddings.weight")) {
      more += "  tie_word_embeddings: false\n";
    }
    if (has_pooler) names.skip_trunk("pooler.*");
    if (names.has_head("cls.seq_relationship.weight")) names.skip("cls.seq_relationship.*");
  } else if (classifier && !has_pooler) {
    more += "  pooling: mean\n";
  } else if (!classifier) {
    names.skip("classifier.*");
    if (!has_pooler) names.skip("bert.pooler.*");
  }
  return FoundModel{.what = family_in_words("bert", layers, (*words)[1]),
                    .data = encoder_data(names, is_masked_lm, (*places)[0]),
                    .model = names.section("bert", keys, more)};
}

std::optional<FoundModel> find_distilbert(FamilyNames names) {
  if (!names.has_anchor("transformer.layer.0.attention.q_lin.weight", "distilbert.")) return {};
  const int64_t layers = names.count_layers("transformer.layer", kDistilLayer);
  const auto words = names.trunk("embeddings.word_embeddings.weight", 2),
             places = names.trunk("embeddings.position_embeddings.weight", 2),
             wide = names.trunk("transformer.layer.0.ffn.lin1.weight", 2);
  if (layers == 0 || !words || !places || !wide) return {};
  const auto classifier = names.head("classifier.weight", 2);
  const bool is_masked_lm = !classifier && names.has_head("vocab_transform.weight");
  const std::string keys = key_line("vocab_size", (*words)[0]) + key_line("dim", (*words)[1]) +
                           key_line("hidden_dim", (*wide)[0]) + key_line("n_layers", layers) +
                           heads_line("n_heads", (*words)[1]) +
                           key_line("max_position_embeddings", (*places)[0]);
  std::string more = labels_key(classifier);
  if (is_masked_lm) {
    more = "  head: masked_lm\n";
    const char* projector = "vocab_projector.weight";
    if (names.has_head(projector) &&
        !names.are_equal(projector, "embeddings.word_embeddings.weight")) {
      more += "  tie_word_embeddings: false\n";
    }
  } else if (!classifier) {
    names.skip("classifier.*");
    if (!names.has_head("pre_classifier.weight")) names.skip("pre_classifier.*");
  }
  return FoundModel{.what = family_in_words("distilbert", layers, (*words)[1]),
                    .data = encoder_data(names, is_masked_lm, (*places)[0]),
                    .model = names.section("distilbert", keys, more)};
}

std::optional<FoundModel> find_vit(FamilyNames names) {
  if (!names.has_anchor("encoder.layer.0.attention.attention.query.weight", "vit.")) return {};
  const int64_t layers = names.count_layers("encoder.layer", kVitLayer);
  const auto patches = names.trunk("embeddings.patch_embeddings.projection.weight", 4),
             places = names.trunk("embeddings.position_embeddings", 3),
             wide = names.trunk("encoder.layer.0.intermediate.dense.weight", 2);
  if (layers == 0 || !patches || !places || !wide) return {};
  const auto side =
      static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>((*places)[1] - 1))));
  if (side < 1 || side * side != (*places)[1] - 1 || (*patches)[2] != (*patches)[3]) return {};
  const int64_t image = side * (*patches)[2];
  const auto classifier = names.head("classifier.weight", 2);
  std::string keys =
      key_line("image_size", image) + key_line("num_channels", (*patches)[1]) +
      key_line("patch_size", (*patches)[2]) + key_line("hidden_size", (*patches)[0]) +
      key_line("num_hidden_layers", layers) + heads_line("num_attention_heads", (*patches)[0]) +
      key_line("intermediate_size", (*wide)[0]);
  if (!names.has_trunk("encoder.layer.0.attention.attention.query.bias")) {
    keys += "  qkv_bias: false\n";
  }
  if (!classifier) names.skip("classifier.*");
  if (names.has_trunk("pooler.dense.weight")) names.skip_trunk("pooler.*");
  return FoundModel{.what = family_in_words("vit", layers, (*patches)[0]),
                    .data = fmt::format(
                        "  type: image_folder\n  dir: {}         # holds train/ with a folder for "
                        "each class\n  size: {}\n  channels: {}\n  normalize: {{mean: 0.5, std: "
                        "0.5}}{}\n",
                        kFillIn, image, (*patches)[1], kNotInFile),
                    .model = names.section("vit", keys, labels_key(classifier))};
}

}  // namespace lacuna
