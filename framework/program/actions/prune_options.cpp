#include "lacuna/framework/program/actions/prune_options.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/program/actions/read_given.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"

namespace lacuna {

const std::vector<std::string>& prune_methods() {
  static const std::vector<std::string> methods = {"magnitude", "wanda", "sparsegpt", "admm"};
  return methods;
}

Config given_configuration(const PruneRequest& request) {
  if (!request.config_path.empty()) {
    return read_given({.path = request.config_path}, request.report_line);
  }
  if (!request.config.is_null()) return request.config.clone();
  if (!request.sparsity && !request.method) {
    const bool has_section = std::ranges::any_of(
        request.overrides, [](const std::string& text) { return text.starts_with("sparsity"); });
    if (has_section) return Config::map();
    throw ConfigError(
        "prune needs --sparsity S, or a CONFIG file whose section `sparsity` sets what to prune "
        "and how (docs/guides/pruning.md)");
  }
  const std::string method = request.method.value_or("admm");
  Config section = Config::map();
  section.set_position({.file = "prune without CONFIG"});
  section.set("algorithm", method);
  // By far the most accurate (docs/measurements/tables.md, one-shot pruning).
  if (method == "admm") section.set("least_squares", true);
  return Config::map({{"sparsity", section}});
}

void apply_prune_options(Config& given, const PruneRequest& request) {
  std::vector<std::string> assignments;
  if (request.method) assignments.push_back("sparsity.algorithm=" + *request.method);
  if (request.sparsity) assignments.push_back("sparsity.sparsity=" + *request.sparsity);
  apply_overrides(given, assignments);
  apply_overrides(given, request.overrides);
  if (request.threads) apply_overrides(given, {"train.threads=" + *request.threads});
}

void report_choice(const PruneRequest& request, const Config& config) {
  const Config section = config.get("sparsity");
  if (!request.config_path.empty() || !request.config.is_null() || !section.is_map()) return;
  if (!request.report_line) return;
  std::string keys;
  for (const char* key : {"algorithm", "sparsity", "least_squares"}) {
    const Config value = section.peek(key);
    const bool is_off = value.is_bool() && !value.as<bool>();
    if (value.is_scalar() && !is_off)
      keys += (keys.empty() ? "" : ", ") + (key + (": " + value.text()));
  }
  request.report_line("no CONFIG is given: prunes by {" + keys +
                      "}; --method and --set choose others");
}

}  // namespace lacuna
