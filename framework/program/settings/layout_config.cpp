#include "lacuna/framework/program/settings/layout_config.hpp"

#include <algorithm>
#include <string>

namespace lacuna {
namespace {

void set_in_entries(Config list, const Config& layout) {
  for (Config entry : list.items()) {
    if (entry.is_map()) entry.set("layout", layout.clone());
  }
}

// Of `sparsifiers`: the others' tensors are not stored.
bool is_of_weights(const Config& entry) {
  if (!entry.is_map()) return false;
  const Config tensor = entry.get("tensor");
  return tensor.is_scalar() && tensor.text().ends_with(".weight");
}

}  // namespace

bool sparsifies_weights(const Config& config) {
  const Config section = config.get("sparsifiers");
  return section.is_list() && std::ranges::any_of(section.items(), is_of_weights);
}

void set_sparsify_layout(Config& config, const Config& layout) {
  config.erase("csr_up_to");
  const Config section = config.get("sparsifiers");
  if (!sparsifies_weights(config)) {
    section.error("no entry is for weights, and only weights have a layout");
  }
  for (Config entry : section.items()) {
    if (is_of_weights(entry)) entry.set("layout", layout.clone());
  }
}

void set_sparsity_layout(Config& config, const Config& layout) {
  Config section = config.get("sparsity");
  config.erase("csr_up_to");
  if (section.is_null()) return;
  if (section.is_list()) {
    set_in_entries(section, layout);
    return;
  }
  if (!section.is_map()) {
    section = Config::map({{"algorithm", "static"}, {"sparsity", section}});
    config.set("sparsity", section);
  }
  section.set("layout", layout.clone());
  if (section.has("phases")) set_in_entries(section.get("phases"), layout);
}

bool is_layout_path(std::string_view path) {
  constexpr std::string_view kBegin = "sparsity.", kOther = "sparsifiers.", kEnd = "layout";
  const bool is_other = path.starts_with(kOther);
  if ((!path.starts_with(kBegin) && !is_other) || !path.ends_with(kEnd)) return false;
  std::string_view between = path.substr((is_other ? kOther : kBegin).size());
  between.remove_suffix(kEnd.size());
  if (!is_other && between.starts_with("phases."))
    between.remove_prefix(std::string_view("phases.").size());
  if (between.empty()) return true;
  if (!between.ends_with('.')) return false;
  between.remove_suffix(1);
  return !between.empty() &&
         std::ranges::all_of(between, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace lacuna
