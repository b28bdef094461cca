#include "lacuna/framework/train/initial_values.hpp"

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
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

}  // namespace

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

}  // namespace lacuna
