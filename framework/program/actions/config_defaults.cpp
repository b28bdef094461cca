#include "lacuna/framework/program/actions/config_defaults.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/framework/train/train_options.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

using Read = std::function<void(const Config& section)>;

// The section with its defaults, or nothing where it cannot be read.
std::optional<Config> with_defaults(const Config& section, const Read& read) {
  const Config copy = section.clone();
  try {
    read(copy);
  } catch (const Error&) {
    return std::nullopt;
  }
  return copy;
}

// Leaves that reading the section without them would write again. Lists are looked at as a whole.
void find_leaves(const Config& section, const Config& node, const std::string& path,
                 const Read& read, std::set<std::string>& found) {
  for (const auto& [key, child] : node.children()) {
    const std::string below = path.empty() ? key : path + "." + key;
    if (child.is_map() && !child.children().empty()) {
      find_leaves(section, child, below, read, found);
      continue;
    }
    if (key.find('.') != std::string::npos) continue;
    const Config without = section.clone();
    Config parent = path.empty() ? without : without.peek(path);
    parent.erase(key);
    const auto again = with_defaults(without, read);
    if (again && again->peek(below) == child) found.insert(below);
  }
}

void look_at(RunData& run, const char* name, const Read& read) {
  const Config section = run.full_config.get(name);
  if (!section.is_map()) return;
  const auto full = with_defaults(section, read);
  if (!full) return;
  run.full_config.set(name, *full);
  std::set<std::string> leaves;
  find_leaves(*full, *full, "", read, leaves);
  for (const std::string& leaf : leaves) run.defaults.insert(std::string(name) + "." + leaf);
}

}  // namespace

void find_defaults(std::vector<RunData>& runs) {
  const Read train = [](const Config& section) { TrainOptions::from_config(section); };
  const Read optimizer = [](const Config& section) {
    make_optimizer(section, {std::make_shared<Parameter>(Shape{1}, Initializer::constant(0.0))});
  };
  const Read sparsity = [](const Config& section) { configure(section, 0); };
  for (RunData& run : runs) {
    if (!run.config.is_map()) continue;
    run.full_config = run.config.clone();
    look_at(run, "train", train);
    look_at(run, "optimizer", optimizer);
    look_at(run, "sparsity", sparsity);
  }
}

}  // namespace lacuna
