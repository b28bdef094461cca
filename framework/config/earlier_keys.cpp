#include "lacuna/framework/config/earlier_keys.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace lacuna {
namespace {

constexpr std::string_view kEarlier = "sparsify", kNow = "sparsifiers";

}  // namespace

void rename_earlier_keys(const Config& config) {
  const Config section = config.peek(kEarlier);
  if (!config.is_map() || section.is_null()) return;
  if (!config.peek(kNow).is_null()) {
    section.error("`sparsify` and `sparsifiers` mean the same; give one of them");
  }
  // In the same tree, which its other handles share, and in the same place of it.
  Config self = config;
  const std::vector<Config::Entry> entries = config.children();
  for (const auto& [key, value] : entries) self.erase(key);
  for (const auto& [key, value] : entries) {
    self.set(key == kEarlier ? kNow : std::string_view(key), value);
  }
}

std::string renamed_assignment(const std::string& assignment) {
  const std::string_view rest =
      std::string_view(assignment)
          .substr(assignment.starts_with(kEarlier) ? kEarlier.size() : assignment.size());
  if (!rest.starts_with('.') && !rest.starts_with('=')) return assignment;
  return std::string(kNow) + std::string(rest);
}

}  // namespace lacuna
