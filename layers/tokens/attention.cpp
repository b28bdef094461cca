#include "lacuna/layers/tokens/attention.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/tokens/head_units.hpp"

namespace lacuna {

Attention::Attention(const Options& options) : options_(options) {
  const int64_t h = options.heads, kv = options.kv_heads;
  if (h < 1 || kv < 0 || (kv > 0 && h % kv != 0)) {
    throw ConfigError(fmt::format(
        "attention: heads must be at least 1 and a multiple of kv_heads, found {} and {}", h, kv));
  }
  if (!(options.dropout >= 0.0 && options.dropout < 1.0)) {
    throw ConfigError(
        fmt::format("attention: dropout must be in [0, 1), found {:f}", options.dropout));
  }
}

Shape Attention::output_shape(const Shape& input) const {
  const std::string name = fmt::format("layer '{}' (attention)", path());
  if (input.rank() != 2) {
    throw ShapeError(
        fmt::format("{}: needs examples of shape [T, (heads + 2 kv_heads) d], found {}", name,
                    input.to_string()));
  }
  const int64_t d = head_features(name, input, options_.heads, options_.kv_heads);
  return input.with_features(options_.heads * d);
}

int64_t Attention::product_flops(const Shape& input) const {
  const int64_t tokens = input[0];
  const int64_t pairs = options_.causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
  return 4 * pairs * output_shape(input).features();  // QKᵀ and PV, 2 each
}

AttentionOptions Attention::plain_options() const {
  return {.heads = options_.heads,
          .kv_heads = options_.kv_heads,
          .causal = options_.causal,
          .scale = options_.scale};
}

// Tokens that are put before sequences make them longer than their mask.
void Attention::require_mask_fits(const Shape& qkv, const Shape& mask) const {
  const Shape expected{qkv[0], qkv[1]};
  if (mask == expected) return;
  throw ShapeError(fmt::format(
      "layer '{}' (attention): sequences of shape {} need a mask of shape {}, and '{}' has {}; "
      "give another one as `mask`, or \"\" for none{}",
      path(), qkv.to_string(), expected.to_string(), options_.mask, mask.to_string(),
      mask.rank() == 2 && mask[1] + 1 == qkv[1]
          ? "; in place of a class_token, let the tokenizer put a [CLS] before each sentence "
            "(data.cls: true of words, or wordpiece), which the mask includes"
          : ""));
}

// The first tokens of a text attend to each other as usual; later ones come one by one.
Variable Attention::decode(const Variable& input, DecodingCache& cache) const {
  const std::string name = fmt::format("layer '{}' (attention)", path());
  if (!options_.causal) {
    throw StateError(name + ": text can be continued only where attention is causal");
  }
  if (input.shape()[0] != 1) {
    throw StateError(fmt::format("{}: text is continued one example at a time, found shape {}",
                                 name, input.shape().to_string()));
  }
  const int64_t heads = options_.heads,
                kv_heads = options_.kv_heads == 0 ? heads : options_.kv_heads;
  const int64_t tokens = input.shape()[1], row = input.shape().features();
  const int64_t d = row / (heads + 2 * kv_heads);
  const Tensor qkv = input.value().to(Order::RowMajor);
  DecodingCache::Seen& seen = cache.of(*this);
  for (int64_t t = 0; t < tokens; ++t) {
    const float* keys = qkv.data() + t * row + heads * d;
    seen.keys.insert(seen.keys.end(), keys, keys + kv_heads * d);
    seen.values.insert(seen.values.end(), keys + kv_heads * d, keys + 2 * kv_heads * d);
  }
  if (cache.length() == 0) return attention(input, plain_options());
  return attention_to_seen(qkv, seen.keys, seen.values, plain_options());
}

Variable Attention::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  if (DecodingCache* cache = decoding_cache()) return decode(input, *cache);
  AttentionOptions options = plain_options();
  const IndexTensor* mask = named_input(*this, options_.mask, kAttentionMask);
  if (mask != nullptr) {
    require_mask_fits(input.shape(), mask->shape());
    options.key_mask = *mask;
  }
  if (training() && options_.dropout > 0.0) {
    options.dropout = options_.dropout;
    options.rng = CounterRng(seed_, path(), static_cast<uint64_t>(calls_.next()));
    options.first_example = first_example();
  }
  return attention(input, options);
}

StateDict Attention::extra_state() const {
  StateDict state;
  if (options_.dropout > 0.0) state.set("calls", calls_.count());
  return state;
}

void Attention::load_extra_state(const StateDict& state) { calls_.set(state.count("calls")); }

void Attention::reset_random(uint64_t seed) {
  seed_ = seed;
  calls_.set(0);
}

namespace {

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

// Heads of d features: [batch, T, count d] → [batch, count, T, d].
std::string heads_of(OnnxGraph& graph, const std::string& x, int64_t count, int64_t d) {
  return graph.transpose(graph.reshape(x, {0, 0, count, d}), {0, 2, 1, 3});
}

// Repeats each head of keys or values for every query head that uses it.
std::string repeated(OnnxGraph& graph, const std::string& x, int64_t times, int64_t heads,
                     int64_t d) {
  if (times == 1) return x;
  const std::string copies =
      graph.add("Expand", {graph.unsqueeze(x, {2}), graph.integers({1, 1, times, 1, 1})});
  return graph.reshape(copies, {0, heads, -1, d});
}

// The keys visible to a query, [T, T] or [batch, 1, 1, T] or both; empty if all are visible.
std::string visible_keys(OnnxGraph& graph, const Attention& layer, const std::string& qkv) {
  std::string visible;
  if (layer.options().causal) {
    const std::string at = graph.positions(qkv);
    visible = graph.add("LessOrEqual", {graph.unsqueeze(at, {0}), graph.unsqueeze(at, {1})});
  }
  if (graph.has_input(layer.options().mask)) {
    const std::string seen =
        graph.unsqueeze(graph.cast(layer.options().mask, OnnxType::Bool), {1, 2});
    visible = visible.empty() ? seen : graph.add("And", {visible, seen});
  }
  return visible;
}

std::string write_attention(OnnxGraph& graph, const Attention& layer, const std::string& qkv,
                            const Shape& example) {
  const int64_t heads = layer.options().heads;
  const int64_t kv_heads = layer.options().kv_heads == 0 ? heads : layer.options().kv_heads;
  const int64_t d = example.features() / (heads + 2 * kv_heads);
  const double scale = layer.options().scale.value_or(1.0 / std::sqrt(static_cast<double>(d)));
  const OnnxGraph::Names parts = graph.split(qkv, {heads * d, kv_heads * d, kv_heads * d}, -1);
  const auto of_keys = [&](const std::string& part) {
    return repeated(graph, heads_of(graph, part, kv_heads, d), heads / kv_heads, heads, d);
  };
  const std::string keys = graph.transpose(of_keys(parts[1]), {0, 1, 3, 2});
  std::string scores =
      graph.add("Mul", {graph.add("MatMul", {heads_of(graph, parts[0], heads, d), keys}),
                        graph.scalar(static_cast<float>(scale))});
  const std::string visible = visible_keys(graph, layer, qkv);
  if (!visible.empty()) {
    const std::string lowest = graph.scalar(std::numeric_limits<float>::lowest());
    scores = graph.add("Where", {visible, scores, lowest});
  }
  std::string weights = graph.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (!visible.empty()) {  // a query without visible keys gets zeros
    weights = graph.add("Where", {visible, weights, graph.scalar(0.0f)});
  }
  const std::string y = graph.add("MatMul", {weights, of_keys(parts[2])});
  return graph.reshape(graph.transpose(y, {0, 2, 1, 3}), {0, 0, heads * d});
}

UnitAxis units_of_attention(UnitGraph& graph, const Attention& layer, const UnitAxis& input,
                            const Shape& example) {
  const Attention::Options& o = layer.options();
  const int dim = example.rank() - 1;
  const UnitGraph::Units qkv = graph.along(layer, input, example, dim);
  const UnitGraph::Units queries = unite_heads(graph, layer, qkv, o.heads, o.kv_heads);
  return {dim, queries};
}

}  // namespace

void register_attention(LayerRegistry& registry) {
  registry.add("attention",
               "attention of queries, keys and values side by side: heads, kv_heads, causal, "
               "dropout, scale, mask",
               {.make = make_attention,
                .onnx = onnx_form(write_attention),
                .units = unit_form(units_of_attention)});
}

}  // namespace lacuna
