// A configuration: parsed, read as every type, its model expanded, written and read again.
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/model/presets/presets.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;
using fuzz::answer;

namespace {

template <class... Types>
void read_as_each(const Config& node) {
  (answer([&] { node.as<Types>(); }), ...);
}

void read_all(const Config& node) {
  if (node.is_map()) {
    for (const auto& [key, child] : node.entries()) read_all(child);
  } else if (node.is_list()) {
    for (const Config& item : node.items()) read_all(item);
  }
  read_as_each<bool, int, int64_t, uint64_t, float, double, std::string>(node);
  read_as_each<std::vector<int64_t>, std::vector<double>, std::vector<std::string>>(node);
}

// A run's config.yaml is what it was given, and its events are JSON.
void require_round_trip(const Config& config) {
  fuzz::require(parse_yaml(config.to_yaml(), "again") == config, "to_yaml changes a configuration");
  fuzz::require(parse_json(config.to_json()).has_value(), "to_json writes no JSON");
}

void expand(const Config& config) {
  if (!config.is_map() || !config.has("model")) return;
  const ModelContext context{.vocabulary_size = 100, .num_classes = 10};
  Config model = config.at("model");
  if (is_preset(model)) model = expand_preset(model, context);
  expand_model(model, context);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  answer([&] {
    const Config config = parse_yaml(fuzz::text_of(data, size), "fuzz.yaml");
    require_round_trip(config);
    read_all(config);
    answer([&] { expand(config); });
    answer([&] { config.require_all_read(); });
  });
  return 0;
}
