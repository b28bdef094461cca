#include "lacuna/framework/model/qkv.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

void require_known_keys(const Config& layer) {
  const std::vector<std::string> known = {"names", "out_features", "kv_features", "in_features",
                                          "bias",  "init",         "init_fan_in", "trainable",
                                          "type",  "name"};
  for (const auto& [key, value] : layer.children()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    value.error(fmt::format("unknown key '{}'; {}", key, suggest_name(key, known)));
  }
}

}  // namespace

std::vector<Config> linear_layers_of_qkv(const Config& layer) {
  std::vector<std::string> names = {"query", "key", "value"};
  if (layer.is_map()) {
    require_known_keys(layer);
    if (layer.has("names")) names = layer.required<std::vector<std::string>>("names");
    if (names.size() != 3) {
      layer.at("names").fail("three names: of the queries', the keys' and the values' layer");
    }
  }
  std::vector<Config> linear_layers;
  for (size_t i = 0; i < names.size(); ++i) {
    Config linear = layer.is_map() ? layer.clone() : Config::map();
    linear.set_position(layer.position());
    linear.set("type", "linear");
    linear.set("name", names[i]);
    if (i > 0 && layer.is_map() && layer.has("kv_features")) {
      linear.set("out_features", layer.at("kv_features").clone());
    }
    linear.erase("names");
    linear.erase("kv_features");
    linear_layers.push_back(linear);
  }
  layer.mark_read();
  return linear_layers;
}

}  // namespace lacuna
