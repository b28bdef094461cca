#include "model/layout_choice.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::bench {

LayoutChoice::LayoutChoice(std::vector<std::string> names) : names_(std::move(names)) {
  const std::vector<std::string> all = {"csr", "auto", "nm 2:4", "nm 2:4 g8", "block 16x16"};
  for (const std::string& name : names_) {
    if (std::ranges::count(all, name) > 0) continue;
    throw ConfigError("--layout: there is no layout '" + name + "'; " + suggest_name(name, all));
  }
}

bool LayoutChoice::has(const std::string& layout) const {
  return names_.empty() || std::ranges::count(names_, layout) > 0;
}

}  // namespace lacuna::bench
