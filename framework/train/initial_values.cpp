#include "lacuna/framework/train/initial_values.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/train/model_file.h"

namespace lacuna {
namespace {

// A glob, or a list of them.
std::vector<std::string> globs(const Config& node) {
  if (node.is_null()) return {};
  if (node.is_scalar()) return {node.as<std::string>()};
  if (!node.is_list()) node.fail("a glob or a list of globs");
  return node.as<std::vector<std::string>>();
}

std::vector<WeightNames::Rename> rules(const Config& node) {
  if (node.is_null()) return {};
  if (!node.is_list()) node.fail("a list of maps with `from` and `to`");
  std::vector<WeightNames::Rename> list;
  for (const Config& item : node.items()) {
    if (!item.is_map()) item.fail("a map with `from` and `to`");
    list.push_back(
        {.from = item.required<std::string>("from"), .to = item.required<std::string>("to")});
  }
  return list;
}

// What the `init_from` of a `model` section names, if it is there.
LoadedWeights load_initial_values(const Config& model_section, Module& model) {
  if (!model_section.is_map()) return {};
  const Config source = model_section.get("init_from");
  if (source.is_null()) return {};
  if (!source.is_map() && !source.is_scalar()) {
    source.fail("a file or run folder, or a map with `path`");
  }
  WeightNames names;
  if (source.is_map()) {
    names = {.rename = rules(source.get("rename")),
             .skip = globs(source.get("skip")),
             .find_pattern = source.optional<bool>("find_pattern").value_or(false)};
  }
  const auto path =
      source.is_map() ? source.required<std::string>("path") : source.as<std::string>();
  source.require_all_read();
  return at_position(source, [&] {
    try {
      return load_weights(path, model, names);
    } catch (const CheckpointError& error) {
      throw CheckpointError(source.where() + ": " + error.what());
    }
  });
}

// First masks of values that were loaded are what was loaded with them, pruned by magnitude where
// more is asked for, unless the entry says how they are made: to prune them at random is nobody's
// wish. Algorithms that begin dense make no first masks.
bool inherit_loaded_masks(Config entry) {
  if (!entry.is_map() || entry.has("init_method")) return false;
  const Config named = entry.has("type") ? entry.get("type") : entry.get("algorithm");
  const std::string type = named.is_null() ? "static" : to_lower(named.text());
  constexpr std::array<std::string_view, 4> kBeginSparse = {"static", "set", "rigl", "snfs"};
  if (std::ranges::find(kBeginSparse, type) == kBeginSparse.end()) return false;
  entry.set("init_method", "inherit");
  return true;
}

}  // namespace

std::vector<std::string> load_first_values(Config& config, Module& model) {
  const Config section_of_model = config.at("model");
  LoadedWeights loaded = load_initial_values(section_of_model, model);
  if (!section_of_model.is_map() || section_of_model.get("init_from").is_null()) return {};
  Config section = config.get("sparsity");
  if (section.is_number()) {
    section = Config::map({{"sparsity", section.clone()}});
    config.set("sparsity", section);
  }
  bool inherits = false;
  if (section.is_list()) {
    for (const Config& entry : section.items()) inherits |= inherit_loaded_masks(entry);
  } else if (section.is_map() && section.has("phases")) {
    const std::vector<Config> phases = section.at("phases").items();
    inherits = !phases.empty() && inherit_loaded_masks(phases.front());
  } else {
    inherits = inherit_loaded_masks(section);
  }
  if (inherits) {
    loaded.notes.emplace_back(
        "the first masks are those of the loaded weights, pruned by magnitude where `sparsity` "
        "asks "
        "for more (init_method: inherit)");
  }
  return std::move(loaded.notes);
}

}  // namespace lacuna
