#include "lacuna/framework/layouts/layout_registry.h"

#include <optional>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/error.h"

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
  const std::optional<PatternShape> pattern = PatternShape::parse(name);
  return pattern && pattern->is_structured() ? &layout_for(*pattern) : nullptr;
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
