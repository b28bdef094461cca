#include "lacuna/framework/program/prune_options.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"

namespace lacuna {

const std::vector<std::string>& prune_methods() {
  static const std::vector<std::string> methods = {"magnitude", "wanda", "sparsegpt", "admm"};
  return methods;
}

Config given_configuration(const PruneCommand& command) {
  if (!command.config_path.empty()) {
    Config given = load_yaml(command.config_path);
    for (const std::string& line : find_beside(given, command.config_path)) {
      std::fprintf(stderr, "%s\n", line.c_str());
    }
    return given;
  }
  if (!command.sparsity && !command.method) {
    const bool has_section = std::ranges::any_of(
        command.overrides, [](const std::string& text) { return text.starts_with("sparsity"); });
    if (has_section) return Config::map();
    throw ConfigError(
        "prune needs --sparsity S, or a CONFIG file whose section `sparsity` says what to prune "
        "and how (docs/guides/pruning.md)");
  }
  const std::string method = command.method.value_or("admm");
  Config section = Config::map();
  section.set_position({.file = "prune without CONFIG"});
  section.set("algorithm", method);
  // By far the most accurate (docs/measurements/results.md, one-shot pruning).
  if (method == "admm") section.set("least_squares", true);
  return Config::map({{"sparsity", section}});
}

void apply_prune_options(Config& given, const PruneCommand& command) {
  std::vector<std::string> assignments;
  if (command.method) assignments.push_back("sparsity.algorithm=" + *command.method);
  if (command.sparsity) assignments.push_back("sparsity.sparsity=" + *command.sparsity);
  apply_overrides(given, assignments);
  apply_overrides(given, command.overrides);
  if (command.threads) apply_overrides(given, {"train.threads=" + *command.threads});
}

void report_choice(const PruneCommand& command, const Config& config) {
  const Config section = config.get("sparsity");
  if (!command.config_path.empty() || !section.is_map()) return;
  std::string keys;
  for (const char* key : {"algorithm", "sparsity", "least_squares"}) {
    const Config value = section.peek(key);
    const bool is_off = value.is_bool() && !value.as<bool>();
    if (value.is_scalar() && !is_off)
      keys += (keys.empty() ? "" : ", ") + (key + (": " + value.text()));
  }
  std::fprintf(stderr, "no CONFIG is given: prunes by {%s}; --method and --set choose others\n",
               keys.c_str());
}

}  // namespace lacuna
