// The text of --set, applied to a configuration again and again, but not more often than a command
// line would: the configuration is copied and compared each time.
#include "lacuna/framework/io/yaml.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Config config = parse_yaml(
      "model: [flatten, {type: linear, out_features: 10}]\ntrain: {epochs: 3}\n", "fuzz.yaml");
  std::string_view text = fuzz::text_of(data, size);
  for (int count = 0; count < 16 && !text.empty(); ++count) {
    const size_t end = std::min(text.find('\xFF'), text.size());
    const std::string_view assignment = text.substr(0, end);
    const Config before = config.clone();
    try {
      apply_override(config, assignment);
    } catch (const ConfigError&) {
      fuzz::require(config == before, "an assignment that is refused changes the configuration");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  fuzz::require(parse_yaml(config.to_yaml(), "again") == config, "to_yaml changes a configuration");
  return 0;
}
