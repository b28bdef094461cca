#include "lacuna/framework/train/initial_values.hpp"

#include <string>
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

// A static mask is the one that another tool's file, or its zeros, gave a weight, unless the entry
// says how it is made: pruning anew, at random, is nobody's wish then.
void inherit_loaded_masks(Config entry) {
  if (!entry.is_map()) return;
  const Config named = entry.has("type") ? entry.get("type") : entry.get("algorithm");
  const bool is_static = named.is_null() || to_lower(named.text()) == "static";
  if (is_static && !entry.has("init_method")) entry.set("init_method", "inherit");
}

}  // namespace

std::vector<std::string> load_first_values(Config& config, Module& model) {
  LoadedWeights loaded = load_initial_values(config.at("model"), model);
  if (loaded.masked.empty()) return std::move(loaded.notes);
  Config section = config.get("sparsity");
  if (section.is_number()) {
    section = Config::map({{"sparsity", section.clone()}});
    config.set("sparsity", section);
  }
  if (section.is_list()) {
    for (const Config& entry : section.items()) inherit_loaded_masks(entry);
  } else if (section.is_map() && section.has("phases")) {
    const std::vector<Config> phases = section.at("phases").items();
    if (!phases.empty()) inherit_loaded_masks(phases.front());
  } else {
    inherit_loaded_masks(section);
  }
  return std::move(loaded.notes);
}

}  // namespace lacuna
