#include "common/encoder_layers.h"

#include <fmt/format.h>

namespace lacuna::bench {

std::string encoder_layers(int64_t features, int64_t hidden, int64_t heads) {
  return fmt::format(
      "- {{type: residual, layers: [{{type: qkv, names: [query, key, value]}}, {{type: attention, "
      "heads: {0}}}, {{type: linear, name: output, out_features: {1}}}]}}\n"
      "- {{type: layer_norm, name: norm1}}\n"
      "- {{type: residual, layers: [{{type: linear, name: intermediate, out_features: {2}}}, gelu, "
      "{{type: linear, name: down, out_features: {1}}}]}}\n"
      "- {{type: layer_norm, name: norm2}}\n",
      heads, features, hidden);
}

}  // namespace lacuna::bench
