#include "lacuna/layers/tokens/token_type_embedding.h"

#include <fmt/core.h>

#include <vector>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/tokens/embedding.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/layers/tokens/token_embedding.h"

namespace lacuna {

TokenTypeEmbedding::TokenTypeEmbedding(const Options& options) : options_(options) {
  if (options.types < 1 || options.features < 1) {
    throw ConfigError(
        fmt::format("token_type_embedding: types and features must be at least 1, found {} and {}",
                    options.types, options.features));
  }
  weight_ = register_parameter(
      "weight",
      std::make_shared<Parameter>(Shape{options.types, options.features},
                                  embedding_initializer("token_type_embedding", options.init)));
  weight_->use = WeightUse::Embedding;
}

Shape TokenTypeEmbedding::output_shape(const Shape& input) const {
  if (input.rank() == 2 && input[1] == options_.features) return input;
  throw ShapeError(
      fmt::format("layer '{}' (token_type_embedding): a weight of shape {} needs examples of shape "
                  "[T, {}], found {}",
                  path(), weight_->shape().to_string(), options_.features, input.to_string()));
}

Variable TokenTypeEmbedding::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const Shape tokens{input.shape()[0], input.shape()[1]};
  const IndexTensor* given = named_input(*this, options_.input, kTokenTypes);
  if (given == nullptr) {
    // One vector for all: its row is added to each token.
    return add(input, embedding(IndexTensor({1}, {0}), weight_));
  }
  if (given->shape() != tokens) {
    throw ShapeError(
        fmt::format("layer '{}' (token_type_embedding): '{}' has shape {}, the tokens {}", path(),
                    options_.input, given->shape().to_string(), tokens.to_string()));
  }
  try {
    return add(input, embedding(*given, weight_));
  } catch (const DataError& error) {
    throw DataError(fmt::format("layer '{}', {}: {}", path(), options_.input, error.what()));
  }
}

}  // namespace lacuna
