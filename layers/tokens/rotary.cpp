#include "lacuna/layers/tokens/rotary.h"

#include <fmt/core.h>

#include <cmath>
#include <string>

#include "lacuna/framework/autograd/tokens/attention.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/decoding.h"

namespace lacuna {

Rotary::Rotary(const Options& options) : options_(options) {
  const int64_t h = options.heads, kv = options.kv_heads;
  if (h < 1 || kv < 0 || (kv > 0 && h % kv != 0)) {
    throw ConfigError(fmt::format(
        "rotary: heads must be at least 1 and kv_heads divide them, found {} and {}", h, kv));
  }
  if (!(options.base > 0.0 && std::isfinite(options.base))) {
    throw ConfigError(fmt::format("rotary: base must be above 0, found {}", options.base));
  }
}

Shape Rotary::output_shape(const Shape& input) const {
  const std::string name = fmt::format("layer '{}' (rotary)", path());
  if (input.rank() != 2) {
    throw ShapeError(
        fmt::format("{}: needs examples of shape [T, (heads + 2 kv_heads) d], found {}", name,
                    input.to_string()));
  }
  const int64_t d = head_features(name, input, options_.heads, options_.kv_heads);
  if (d % 2 != 0) {
    throw ShapeError(fmt::format("{}: needs an even number of features in a head, found {} of {}",
                                 name, d, input.to_string()));
  }
  return input;
}

Variable Rotary::forward(const Variable& input) {
  output_shape(input.shape().without_batch());
  const DecodingCache* cache = decoding_cache();
  return rotary(input, {.heads = options_.heads,
                        .kv_heads = options_.kv_heads,
                        .base = options_.base,
                        .first_position = cache == nullptr ? 0 : cache->length()});
}

}  // namespace lacuna
