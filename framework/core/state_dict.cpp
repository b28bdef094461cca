#include "lacuna/framework/core/state_dict.h"

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"

namespace lacuna {

const StateDict::Value& StateDict::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [key, value] : values_) names.push_back(key);
  throw CheckpointError("the saved state has no '" + std::string(name) + "'; " +
                        suggest_name(name, names));
}

void StateDict::wrong_type(std::string_view name) {
  throw CheckpointError("'" + std::string(name) + "' in the saved state is of another type");
}

void StateDict::merge(std::string_view prefix, StateDict other) {
  for (auto& [name, value] : other.values_) set(std::string(prefix) + "/" + name, std::move(value));
}

StateDict StateDict::below(std::string_view prefix) const {
  StateDict part;
  const std::string start = std::string(prefix) + "/";
  for (auto it = values_.lower_bound(start); it != values_.end() && it->first.starts_with(start);
       ++it) {
    part.set(it->first.substr(start.size()), it->second);
  }
  return part;
}

}  // namespace lacuna
