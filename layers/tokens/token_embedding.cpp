#include "lacuna/layers/tokens/token_embedding.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "lacuna/framework/autograd/tokens/embedding.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

Initializer embedding_initializer(std::string_view layer, const WeightDraw& init) {
  if (!init.zero_bias()) {  // all others are drawn for a fan-in
    throw ConfigError(
        fmt::format("{}: an embedding has no fan-in; its init is zeros, or a map {{type: normal "
                    "or truncated_normal, std}}",
                    layer));
  }
  return make_initializer(init, 1, 1);
}

TokenEmbedding::TokenEmbedding(const Options& options) : options_(options) {
  if (options.vocab_size < 1 || options.features < 1) {
    throw ConfigError(
        fmt::format("token_embedding: vocab_size and features must be at least 1, found {} and {}",
                    options.vocab_size, options.features));
  }
  if (options.padding_id < -1 || options.padding_id >= options.vocab_size) {
    throw ConfigError(fmt::format("token_embedding: padding_id {} is not in a vocabulary of {} ids",
                                  options.padding_id, options.vocab_size));
  }
  weight_ = register_parameter(
      "weight",
      std::make_shared<Parameter>(Shape{options.vocab_size, options.features},
                                  embedding_initializer("token_embedding", options.init)));
  weight_->use = WeightUse::Embedding;
}

Shape TokenEmbedding::output_shape(const Shape& input) const {
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes.push_back(options_.features);
  if (input.rank() > 1) {
    throw ShapeError(fmt::format(
        "layer '{}' (token_embedding): a weight of shape {} needs examples of ids [T], found {}",
        path(), weight_->shape().to_string(), input.to_string()));
  }
  return Shape(sizes);
}

Variable TokenEmbedding::forward(const Variable& input) {
  const IndexTensor* ids = ids_of(input);
  if (ids == nullptr) {
    throw StateError(fmt::format(
        "layer '{}' (token_embedding): its input {} holds no token ids (token_ids); it is the "
        "first layer that tokens reach",
        path(), input.shape().to_string()));
  }
  try {
    return embedding(*ids, weight_, {.padding_id = options_.padding_id});
  } catch (const DataError& error) {
    throw DataError(fmt::format("layer '{}': {}", path(), error.what()));
  }
}

}  // namespace lacuna
