#include "lacuna/framework/train/layout_config.h"

#include <algorithm>

namespace lacuna {
namespace {

void set_in_entries(Config list, const Config& layout) {
  for (Config entry : list.items()) {
    if (entry.is_map()) entry.set("layout", layout.clone());
  }
}

}  // namespace

void set_layout(Config& config, const Config& layout) {
  Config section = config.get("sparsity");
  config.erase("layouts");
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
  constexpr std::string_view kBegin = "sparsity.", kEnd = "layout";
  if (!path.starts_with(kBegin) || !path.ends_with(kEnd)) return false;
  std::string_view between = path.substr(kBegin.size(), path.size() - kBegin.size() - kEnd.size());
  if (between.starts_with("phases.")) between.remove_prefix(std::string_view("phases.").size());
  if (between.empty()) return true;
  if (!between.ends_with('.')) return false;
  between.remove_suffix(1);
  return !between.empty() &&
         std::ranges::all_of(between, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace lacuna
