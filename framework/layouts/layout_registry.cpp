#include "lacuna/framework/layouts/layout_registry.h"

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/grouped.h"
#include "lacuna/framework/layouts/nm.h"

namespace lacuna {
namespace {

LayoutChoices& layouts() {
  static LayoutChoices all = {
      {"dense", &dense_layout()}, {"masked", &masked_layout()}, {"csr", &csr_layout()}};
  return all;
}

}  // namespace

const Layout* find_layout(std::string_view name) {
  const auto found = layouts().find(name);
  if (found != layouts().end()) return found->second;
  const Layout* nm = find_nm_layout(name);
  return nm != nullptr ? nm : find_grouped_layout(name);
}

std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const auto& [name, layout] : layouts()) names.push_back(name);
  return names;
}

bool add_layout(const Layout& layout) {
  if (!layouts().emplace(layout.name(), &layout).second) {
    throw StateError("there is already a layout named '" + std::string(layout.name()) + "'");
  }
  return true;
}

}  // namespace lacuna
