#include "lacuna/framework/config/state_dict.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

const StateDict::Value& StateDict::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [key, value] : values_) names.push_back(key);
  const std::string suggestion = suggest_name(name, names);
  throw CheckpointError("the saved state has no '" + prefix_ + std::string(name) + "'" +
                        (suggestion.empty() ? "" : "; " + suggestion));
}

void StateDict::refuse(std::string_view name, const std::string& problem) const {
  throw CheckpointError("'" + prefix_ + std::string(name) + "' in the saved state " + problem);
}

void StateDict::wrong_type(std::string_view name) const { refuse(name, "has the wrong type"); }

int64_t StateDict::count(std::string_view name, int64_t most) const {
  const auto value = get<int64_t>(name);
  if (value >= 0 && value <= most) return value;
  refuse(name, fmt::format("is {}, expected a count{}", value,
                           most == kMostCounted ? "" : fmt::format(" of at most {}", most)));
}

double StateDict::number(std::string_view name, double least, double most) const {
  const auto value = get<double>(name);
  if (value >= least && value <= most) return value;
  std::string expected = "a finite number";
  if (most != kLargestNumber) {
    expected = "a number from " + Config(least).text() + " to " + Config(most).text();
  } else if (least != -kLargestNumber) {
    expected += " of at least " + Config(least).text();
  }
  refuse(name, "is " + Config(value).text() + ", expected " + expected);
}

void StateDict::merge(std::string_view prefix, StateDict other) {
  for (auto& [name, value] : other.values_) set(std::string(prefix) + "/" + name, std::move(value));
}

StateDict StateDict::below(std::string_view prefix) const {
  StateDict part;
  part.prefix_ = prefix_ + std::string(prefix) + "/";
  const std::string start = std::string(prefix) + "/";
  for (auto it = values_.lower_bound(start); it != values_.end() && it->first.starts_with(start);
       ++it) {
    part.set(it->first.substr(start.size()), it->second);
  }
  return part;
}

}  // namespace lacuna
