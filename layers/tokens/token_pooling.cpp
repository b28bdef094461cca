#include "lacuna/layers/tokens/token_pooling.h"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/tokens.h"
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

Variable SelectToken::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  return select_token(input, options_.index);
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
