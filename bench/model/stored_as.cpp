#include "model/stored_as.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace lacuna::bench {

std::string stored_as(const std::vector<ParameterPtr>& weights) {
  std::map<std::string, size_t> counts;
  for (const ParameterPtr& weight : weights) {
    ++counts[std::string(weight->pattern()->layout().name())];
  }
  const auto& [layout, count] =
      *std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return count == weights.size() ? layout
                                 : fmt::format("{} in {} of {}", layout, count, weights.size());
}

}  // namespace lacuna::bench
