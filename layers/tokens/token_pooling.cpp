#include "lacuna/layers/tokens/token_pooling.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/tokens/tokens.h"
#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {
namespace {

void require_tokens(const Module& layer, const Shape& input) {
  if (input.rank() == 2) return;
  throw ShapeError(fmt::format("layer '{}' ({}): needs examples of shape [T, features], found {}",
                               layer.path(), layer.type(), input.to_string()));
}

LayerPtr make_select_token(const Config& options, const Shape&) {
  const auto index = options.get<int64_t>("index", 0);
  return std::make_unique<SelectToken>(
      SelectToken::Options{.index = require_integer(options, "index", index, -kMostInteger),
                           .mask = options.get<std::string>("mask", "attention_mask")});
}

LayerPtr make_mean_pool(const Config& options, const Shape&) {
  return std::make_unique<MeanPool>(
      MeanPool::Options{.mask = options.get<std::string>("mask", "attention_mask")});
}

// 1 where the mask is not 0, as floats.
std::string ones_of(OnnxGraph& graph, const std::string& mask) {
  return graph.cast(graph.cast(mask, OnnxType::Bool), OnnxType::Float);
}

// An index from the end selects the token at which the count of tokens up to and including it fits
// the count of all tokens: a sum over all tokens in which only this one has a nonzero factor.
std::string write_select_token(OnnxGraph& graph, const SelectToken& layer, const std::string& x,
                               const Shape&) {
  const auto& [index, mask] = layer.options();
  if (index >= 0 || !graph.has_input(mask)) {
    return graph.add("Gather", {x, graph.integer(index)}, {{"axis", int64_t{1}}});
  }
  const std::string is_token = graph.cast(mask, OnnxType::Bool);
  const std::string ones = graph.cast(is_token, OnnxType::Int64);
  const std::string up_to = graph.add("CumSum", {ones, graph.integer(1)});
  const std::string all =
      graph.add("ReduceSum", {ones, graph.integers({1})}, {{"keepdims", int64_t{1}}});
  const std::string number = graph.add("Add", {all, graph.integers({index + 1})});
  const std::string is_it = graph.add("And", {graph.add("Equal", {up_to, number}), is_token});
  const std::string weights = graph.unsqueeze(graph.cast(is_it, OnnxType::Float), {2});
  return graph.add("ReduceSum", {graph.add("Mul", {x, weights}), graph.integers({1})},
                   {{"keepdims", int64_t{0}}});
}

std::string write_mean_pool(OnnxGraph& graph, const MeanPool& layer, const std::string& x,
                            const Shape&) {
  const std::string& mask = layer.options().mask;
  if (!graph.has_input(mask)) {
    return graph.add("ReduceMean", {x},
                     {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  }
  const std::string weights = graph.unsqueeze(ones_of(graph, mask), {2});
  const auto sum = [&](const std::string& value) {
    return graph.add("ReduceSum", {value, graph.integers({1})}, {{"keepdims", int64_t{0}}});
  };
  // For a sequence without tokens, it is 0.
  const std::string tokens = graph.add("Max", {sum(weights), graph.scalar(1.0f)});
  return graph.add("Div", {sum(graph.add("Mul", {x, weights})), tokens});
}

}  // namespace

Shape SelectToken::output_shape(const Shape& input) const {
  require_tokens(*this, input);
  const int64_t index = options_.index < 0 ? options_.index + input[0] : options_.index;
  if (index < 0 || index >= input[0]) {
    throw ShapeError(fmt::format("layer '{}' (select_token): there is no token {} in shape {}",
                                 path(), options_.index, input.to_string()));
  }
  return {input[1]};
}

// A mask does not apply from the beginning if something was put before the sequences.
Variable SelectToken::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const IndexTensor* mask = named_input(*this, options_.mask, kAttentionMask);
  if (mask == nullptr || options_.index == 0) return select_token(input, options_.index);
  const Shape tokens{input.shape()[0], input.shape()[1]};
  if (mask->shape() == tokens) return select_unpadded(input, *mask);
  if (options_.index > 0) return select_token(input, options_.index);
  throw ShapeError(fmt::format(
      "layer '{}' (select_token): sequences of shape {} need a mask of shape {} to tell where each "
      "ends, and '{}' has {}; give another one as `mask`, or \"\" for none",
      path(), input.shape().to_string(), tokens.to_string(), options_.mask,
      mask->shape().to_string()));
}

Variable SelectToken::select_unpadded(const Variable& input, const IndexTensor& mask) const {
  const int64_t batch = mask.shape()[0], length = mask.shape()[1];
  std::vector<int64_t> places;
  for (int64_t row = 0; row < batch; ++row) {
    const auto is_token = [&](int64_t t) {
      return mask.values()[static_cast<size_t>(row * length + t)] != 0;
    };
    int64_t at = options_.index, found = 0;
    if (at < 0) {
      for (at = length - 1; at >= 0; --at) {
        found -= is_token(at) ? 1 : 0;
        if (found == options_.index) break;
      }
    }
    if (at < 0 || !is_token(at)) {
      throw DataError(
          fmt::format("layer '{}' (select_token): sequence {} of the batch is too short to have a "
                      "token {} apart from its padding ('{}')",
                      path(), row, options_.index, options_.mask));
    }
    places.push_back(row * length + at);
  }
  return select_tokens(input, IndexTensor(Shape{batch}, std::move(places)));
}

Shape LabelledTokens::output_shape(const Shape& input) const {
  require_tokens(*this, input);
  return input;
}

Variable LabelledTokens::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const IndexTensor* places = named_input(kLabelledTokens);
  return places == nullptr ? input : select_tokens(input, *places);
}

Shape MeanPool::output_shape(const Shape& input) const {
  require_tokens(*this, input);
  return {input[1]};
}

Variable MeanPool::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const IndexTensor* mask = named_input(*this, options_.mask, kAttentionMask);
  return mask == nullptr ? mean_of_tokens(input) : mean_of_tokens(input, *mask);
}

void register_token_pooling(LayerRegistry& registry) {
  registry.add("select_token", "one token of each sequence: index (0), mask",
               {.make = make_select_token,
                .onnx = onnx_form(write_select_token),
                .units = units_of_features()});
  registry.add(
      "labelled_tokens", "the tokens that have a label, or all if there are no labels",
      {.make = make_plain<LabelledTokens>, .onnx = onnx_identity(), .units = units_kept()});
  registry.add(
      "mean_pool", "mean over the tokens of each sequence: mask",
      {.make = make_mean_pool, .onnx = onnx_form(write_mean_pool), .units = units_of_features()});
}

}  // namespace lacuna
