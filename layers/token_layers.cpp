#include "lacuna/layers/token_layers.hpp"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/init.h"
#include "lacuna/layers/layer_options.hpp"
#include "lacuna/layers/tokens/attention.h"
#include "lacuna/layers/tokens/class_token.h"
#include "lacuna/layers/tokens/patch_embedding.h"
#include "lacuna/layers/tokens/position_embedding.h"
#include "lacuna/layers/tokens/rotary.h"
#include "lacuna/layers/tokens/token_embedding.h"
#include "lacuna/layers/tokens/token_pooling.h"
#include "lacuna/layers/tokens/token_type_embedding.h"

namespace lacuna {
namespace {

using LayerPtr = std::unique_ptr<Module>;

// The layer; what is wrong with its options is told with their place.
template <class Layer>
LayerPtr make_at(const Config& options, const typename Layer::Options& layer) {
  return at_position(options, [&]() -> LayerPtr { return std::make_unique<Layer>(layer); });
}

int64_t required_size(const Config& options, const char* key) {
  return require_at_least(options, key, options.required<int64_t>(key), 1);
}

// How an embedding is drawn; the default is written into the tree as it would be in a file.
WeightDraw read_embedding_init(const Config& options, const WeightDraw& otherwise) {
  if (!options.has("init")) {
    Config tree = options;
    tree.set("init", otherwise.type == WeightInit::Zeros
                         ? Config("zeros")
                         : Config::map({{"type", "normal"}, {"std", otherwise.std}}));
  }
  return read_weight_init(options, "init");
}

WeightDraw standard_normal() { return {WeightInit::Normal, 1.0}; }

LayerPtr make_token_embedding(const Config& options, const Shape&) {
  const auto padding = options.optional<int64_t>("padding_id");
  if (padding) require_at_least(options, "padding_id", *padding, 0);
  return make_at<TokenEmbedding>(options,
                                 {.vocab_size = required_size(options, "vocab_size"),
                                  .features = required_size(options, "features"),
                                  .padding_id = padding.value_or(-1),
                                  .init = read_embedding_init(options, standard_normal())});
}

LayerPtr make_position_embedding(const Config& options, const Shape& input) {
  const auto form = options.get<std::string>("form", "layer");
  if (form != "layer" && form != "parameter") options.at("form").fail("layer or parameter");
  const auto kind = options.get<std::string>("kind", "learned");
  if (kind != "learned" && kind != "sinusoidal") options.at("kind").fail("learned or sinusoidal");
  PositionEmbedding::Options layer{.positions = required_size(options, "positions"),
                                   .features = read_features(options, "features", input),
                                   .form = form == "layer" ? PositionEmbedding::Form::Layer
                                                           : PositionEmbedding::Form::Parameter};
  if (kind == "sinusoidal") {
    layer.kind = PositionEmbedding::Kind::Sinusoidal;
  } else {
    layer.init = read_embedding_init(options, standard_normal());
  }
  return make_at<PositionEmbedding>(options, layer);
}

LayerPtr make_token_type_embedding(const Config& options, const Shape& input) {
  const auto types = options.get<int64_t>("types", 2);
  return make_at<TokenTypeEmbedding>(options,
                                     {.types = require_at_least(options, "types", types, 1),
                                      .features = read_features(options, "features", input),
                                      .input = options.get<std::string>("input", "token_type_ids"),
                                      .init = read_embedding_init(options, standard_normal())});
}

LayerPtr make_class_token(const Config& options, const Shape& input) {
  return make_at<ClassToken>(options, {.features = read_features(options, "features", input),
                                       .init = read_embedding_init(options, WeightInit::Zeros)});
}

LayerPtr make_patch_embedding(const Config& options, const Shape& input) {
  options.at("patch");
  const int64_t channels = read_channels(options, "channels", input);
  if (!options.get("image").is_null()) {
    const Extent image = read_extent(options, "image", {}, 1);
    if (image != Extent{input[1], input[2]}) {
      options.at("image").error(fmt::format(
          "says images of {}, and those that come in are of shape {}; give {}, or leave it out",
          image.to_string(), input.to_string(), Extent{input[1], input[2]}.to_string()));
    }
  }
  return make_at<PatchEmbedding>(options, {.channels = channels,
                                           .features = required_size(options, "features"),
                                           .patch = read_extent(options, "patch", {16, 16}, 1),
                                           .bias = options.get("bias", true),
                                           .image = {input[1], input[2]},
                                           .init = read_weight_init(options, "init")});
}

struct Heads {
  int64_t of_queries, of_keys;
};

// heads, and kv_heads, as many where they are left out.
Heads read_heads(const Config& options) {
  const int64_t heads = required_size(options, "heads");
  const auto kv_heads = options.get<int64_t>("kv_heads", heads);
  require_at_least(options, "kv_heads", kv_heads, 1);
  if (heads % kv_heads != 0) {
    options.at("kv_heads").fail("a divisor of heads, which is " + std::to_string(heads));
  }
  return {heads, kv_heads};
}

LayerPtr make_attention(const Config& options, const Shape&) {
  const Heads heads = read_heads(options);
  const double dropout = options.get("dropout", 0.0);
  if (!(dropout >= 0.0 && dropout < 1.0)) options.at("dropout").fail("a probability in [0, 1)");
  return make_at<Attention>(options, {.heads = heads.of_queries,
                                      .kv_heads = heads.of_keys,
                                      .causal = options.get("causal", false),
                                      .dropout = dropout,
                                      .scale = options.optional<double>("scale"),
                                      .mask = options.get<std::string>("mask", "attention_mask")});
}

LayerPtr make_rotary(const Config& options, const Shape&) {
  const Heads heads = read_heads(options);
  return make_at<Rotary>(
      options,
      {.heads = heads.of_queries, .kv_heads = heads.of_keys, .base = options.get("base", 10000.0)});
}

LayerPtr make_select_token(const Config& options, const Shape&) {
  const auto index = options.get<int64_t>("index", 0);
  return std::make_unique<SelectToken>(
      SelectToken::Options{.index = require_integer(options, "index", index, -kMostInteger),
                           .mask = options.get<std::string>("mask", "attention_mask")});
}

LayerPtr make_labelled_tokens(const Config&, const Shape&) {
  return std::make_unique<LabelledTokens>();
}

LayerPtr make_mean_pool(const Config& options, const Shape&) {
  return std::make_unique<MeanPool>(
      MeanPool::Options{.mask = options.get<std::string>("mask", "attention_mask")});
}

}  // namespace

void register_token_layers(LayerRegistry& registry) {
  registry.add("token_embedding", "a vector for each token: vocab_size, features, padding_id, init",
               {.make = make_token_embedding, .vocabulary_key = "vocab_size"});
  registry.add(
      "position_embedding",
      "adds a vector for each position: positions, form (layer, parameter), kind (learned, "
      "sinusoidal), features, init",
      make_position_embedding);
  registry.add("token_type_embedding",
               "adds a vector for each token's type: types (2), input, features, init",
               make_token_type_embedding);
  registry.add("class_token", "puts a learned token before each sequence: features, init",
               make_class_token);
  registry.add("patch_embedding",
               "a vector for each patch of images: patch, features, bias, init, image",
               make_patch_embedding);
  registry.add("attention",
               "attention of queries, keys and values side by side: heads, kv_heads, causal, "
               "dropout, scale, mask",
               make_attention);
  registry.add("rotary", "turns queries and keys by their positions: heads, kv_heads, base (10000)",
               make_rotary);
  registry.add("select_token", "one token of each sequence: index (0), mask", make_select_token);
  registry.add("labelled_tokens", "in training the tokens that have a label, else all",
               make_labelled_tokens);
  registry.add("mean_pool", "mean over the tokens of each sequence: mask", make_mean_pool);
}

}  // namespace lacuna
