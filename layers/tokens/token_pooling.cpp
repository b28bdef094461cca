#include "lacuna/layers/tokens/token_pooling.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "lacuna/framework/autograd/tokens/tokens.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

void require_tokens(const Module& layer, const Shape& input) {
  if (input.rank() == 2) return;
  throw ShapeError(fmt::format("layer '{}' ({}): needs examples of shape [T, features], found {}",
                               layer.path(), layer.type(), input.to_string()));
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

// A mask of sequences that something was put before says nothing of places from the beginning.
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
                      "token {} beside its padding ('{}')",
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

}  // namespace lacuna
