#include "lacuna/framework/program/settings/list_sections.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/program/settings/documented_keys.hpp"

namespace lacuna {
namespace {

// Values of more characters would hide the form that is shown.
constexpr size_t kLongestShown = 30;

// Of the section's map, or of an entry of its list: "sparsifiers.0.tensor".
bool is_documented(const std::string& section, const std::string& key) {
  const auto keys = documented_keys(config_reference());
  return std::ranges::any_of(keys, [&](const DocumentedKey& documented) {
    const std::string& path = documented.path;
    if (!path.starts_with(section + '.')) return false;
    const size_t rest = section.size() + 1;
    const bool is_of_entry = std::isdigit(static_cast<unsigned char>(path[rest])) != 0;
    return path.substr(is_of_entry ? path.find('.', rest) + 1 : rest) == key;
  });
}

// "init_from: {path: w.npz}" of "init_from.path" and "w.npz".
std::string as_map(const std::string& keys, const std::string& value) {
  const size_t dot = keys.find('.');
  if (dot == std::string::npos) return keys + ": " + value;
  return keys.substr(0, dot) + ": {" + as_map(keys.substr(dot + 1), value) + "}";
}

std::string form_of_model(const std::string& keys, const std::string& key,
                          const std::string& value) {
  if (key == "layers") {
    return "the list is the layers themselves; set one of them, as in model.0, or model itself";
  }
  if (key == "type" || key == "from_hf") {
    return fmt::format("to replace the layers, set model itself, as in --set 'model={{{}}}'",
                       as_map(keys, value));
  }
  return fmt::format("write it as a map, as in model: {{layers: [...], {}}}", as_map(keys, value));
}

}  // namespace

void require_map_for_key(const Config& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || !config.is_map()) return;
  const std::string path = assignment.substr(0, equals), given = assignment.substr(equals + 1);
  const std::string value =
      given.empty() || given.size() > kLongestShown ? "..." : printable(given);
  for (const std::string name : {"model", "sparsity", "sparsifiers"}) {
    if (!path.starts_with(name + '.')) continue;
    const Config section = config.peek(name);
    const std::string keys = path.substr(name.size() + 1), key = keys.substr(0, keys.find('.'));
    if (!section.is_list() || key == "phases" || !is_documented(name, key)) return;
    const std::string form = name == "model"
                                 ? form_of_model(keys, key, value)
                                 : fmt::format("set it in one of them, as in {}.0.{}", name, keys);
    throw ConfigError(fmt::format("--set {}: {} is a list of {}, not a map with `{}`; {}",
                                  printable(assignment), section.where(),
                                  name == "model" ? "layers" : "entries", key, form));
  }
}

}  // namespace lacuna
