#include "model/transformer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "common/operands.h"
#include "common/operations.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/sparsity/configure.h"
#include "model/stored_as.h"

namespace lacuna::bench {
namespace {

std::string model_yaml(const Transformer& t) {
  if (t.preset == "gpt2") {
    return fmt::format(
        "{{type: gpt2, vocab_size: {}, n_positions: {}, n_layer: {}, n_head: {}, n_embd: {}, "
        "n_inner: {}, resid_pdrop: {p}, embd_pdrop: {p}, attn_pdrop: {p}}}",
        t.vocabulary, t.length, t.layers, t.heads, t.features, t.hidden, fmt::arg("p", t.dropout));
  }
  const std::string common = fmt::format(
      "hidden_size: {}, num_hidden_layers: {}, num_attention_heads: {}, intermediate_size: {}, "
      "hidden_dropout_prob: {p}, attention_probs_dropout_prob: {p}, num_labels: {}",
      t.features, t.layers, t.heads, t.hidden, t.classes, fmt::arg("p", t.dropout));
  if (t.preset == "vit") return fmt::format("{{type: vit, patch_size: {}, {}}}", t.patch, common);
  return fmt::format("{{type: bert, vocab_size: {}, max_position_embeddings: {}, {}}}",
                     t.vocabulary, t.length, common);
}

// Those of the linear layers between embedding and head.
std::vector<ParameterPtr> block_weights(const Module& model) {
  std::vector<ParameterPtr> weights;
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::string& name = parameter->name();
    const bool is_of_block = name.find("transformer.h.") != std::string::npos ||
                             name.find(".encoder.") != std::string::npos;
    if (parameter->use == WeightUse::Linear && is_of_block) weights.push_back(parameter);
  }
  return weights;
}

IndexTensor spread_integers(const Shape& shape, int64_t bound) {
  std::vector<int64_t> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * 7919) % bound;
  return {shape, std::move(values)};
}

}  // namespace

std::unique_ptr<Sequential> Transformer::build() const {
  register_builtins();
  const Config section = parse_yaml(model_yaml(*this), name);
  const Shape example = preset == "vit" ? Shape{3, size, size} : Shape{length};
  auto model = build_model(
      model_layers(section, {.vocabulary_size = vocabulary, .num_classes = classes}), example);
  model->initialize(0);
  return model;
}

const std::vector<std::string>& transformer_names() {
  static const std::vector<std::string> names = {"gpt_mini",  "gpt_4x192", "gpt_6x384",
                                                 "bert_base", "vit_s",     "vit_cifar"};
  return names;
}

std::unique_ptr<Transformer> find_transformer(const std::string& name) {
  static const std::vector<Transformer> all = {
      {.name = "gpt_mini", .title = "GPT-mini", .preset = "gpt2"},
      {.name = "gpt_4x192", .title = "GPT", .preset = "gpt2", .features = 192, .hidden = 768},
      {.name = "gpt_6x384",
       .title = "GPT",
       .preset = "gpt2",
       .layers = 6,
       .heads = 6,
       .features = 384,
       .hidden = 1536,
       .batch = 16,
       .length = 256},
      {.name = "bert_base",
       .title = "BERT-base",
       .preset = "bert",
       .layers = 12,
       .heads = 12,
       .features = 768,
       .hidden = 3072,
       .classes = 2,
       .vocabulary = 30522,
       .batch = 8,
       .length = 128},
      {.name = "vit_s",
       .title = "ViT-S/16",
       .preset = "vit",
       .layers = 12,
       .heads = 6,
       .features = 384,
       .hidden = 1536,
       .classes = 1000,
       .vocabulary = 0,
       .batch = 8,
       .length = 0,
       .size = 224,
       .patch = 16},
      {.name = "vit_cifar",
       .title = "ViT for CIFAR-10",
       .preset = "vit",
       .layers = 6,
       .hidden = 256,
       .classes = 10,
       .vocabulary = 0,
       .batch = 128,
       .length = 0,
       .size = 32,
       .patch = 4}};
  const auto found = std::ranges::find(all, name, &Transformer::name);
  return found == all.end() ? nullptr : std::make_unique<Transformer>(*found);
}

Transformer tiny(Transformer transformer) {
  transformer.layers = 1;
  transformer.heads = 2;
  transformer.features = 32;
  transformer.hidden = 64;
  transformer.vocabulary = std::min<int64_t>(transformer.vocabulary, 65);
  transformer.batch = 2;
  transformer.length = std::min<int64_t>(transformer.length, 9);
  transformer.size = std::min<int64_t>(transformer.size, 32);
  return transformer;
}

TransformerTrainee::TransformerTrainee(const Transformer& transformer, int64_t examples,
                                       const BlockWeights& weights)
    : model_(transformer.build()) {
  if (transformer.preset == "vit") {
    images_ = random_tensor(Shape{examples, 3, transformer.size, transformer.size}, "images");
  } else {
    ids_.emplace("input_ids",
                 spread_integers({examples, transformer.length}, transformer.vocabulary));
  }
  labels_ = spread_integers(
      transformer.preset == "gpt2" ? Shape{examples, transformer.length} : Shape{examples},
      transformer.classes);
  const Shape& batch = images_.defined() ? images_.shape() : ids_.at("input_ids").shape();
  profile_ = std::make_unique<PassProfile>(*model_, batch.without_batch(), examples);
  optimizer_ =
      std::make_unique<AdamW>(model_->parameters(), AdamWOptions{.lr = 1e-3, .weight_decay = 0.1});
  if (weights.section.empty()) return;
  Config section = parse_yaml(weights.section, "sparsity");
  std::vector<std::string> names;
  for (const ParameterPtr& weight : block_weights(*model_)) names.push_back(weight->name());
  section.set("param_filter", Config::from_value(names));
  section.set("layout", weights.layout);
  algorithm_ = configure(section, 0);
  algorithm_->compression().batch = transformer.batch * transformer.tokens();
  model_->apply(*algorithm_);
  optimizer_->apply(*algorithm_);
}

float TransformerTrainee::step() {
  const PassProfile::Pass pass(*profile_);
  Clock::time_point start = Clock::now();
  const NamedInputs scope(ids_);
  const auto ids = ids_.find("input_ids");
  const Variable input = ids == ids_.end() ? Variable(images_) : token_ids(ids->second);
  const Variable loss = cross_entropy((*model_)(input), labels_);
  profile_->add("forward", seconds_since(start));
  backward(loss);
  start = Clock::now();
  optimizer_->step();
  optimizer_->zero_grad();
  profile_->add("optimizer", seconds_since(start));
  return loss.value().item();
}

double TransformerTrainee::operations() const {
  const Shape& batch = images_.defined() ? images_.shape() : ids_.at("input_ids").shape();
  return operations_of(*model_, batch.without_batch(), batch[0], Extent::Training);
}

std::string TransformerTrainee::stored() const { return stored_as(block_weights(*model_)); }

}  // namespace lacuna::bench
