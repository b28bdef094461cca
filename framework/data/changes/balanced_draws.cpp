#include "lacuna/framework/data/changes/balanced_draws.hpp"

#include <map>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/changes/permutation.hpp"

namespace lacuna {

std::vector<int64_t> balanced_draws(std::span<const int64_t> labels, uint64_t seed, int64_t epoch) {
  const auto stream = static_cast<uint64_t>(epoch);
  const auto n = static_cast<int64_t>(labels.size());
  std::map<int64_t, std::vector<int64_t>> members;
  for (const int64_t i : seeded_permutation(n, seed, "balanced", stream)) {
    const int64_t label = labels[static_cast<size_t>(i)];
    if (label != kIgnoredLabel) members[label].push_back(i);
  }
  if (members.empty())
    throw DataError(
        "sampling: balanced has no example to draw, because the loss ignores every label");
  const auto classes = static_cast<int64_t>(members.size());
  std::vector<int64_t> quotas(members.size(), n / classes);
  const std::vector<int64_t> order = seeded_permutation(classes, seed, "balanced.classes", stream);
  for (int64_t k = 0; k < n % classes; ++k)
    ++quotas[static_cast<size_t>(order[static_cast<size_t>(k)])];
  std::vector<int64_t> draws;
  draws.reserve(labels.size());
  size_t place = 0;  // of the class among those that have labels
  for (const auto& [label, examples] : members) {
    for (int64_t j = 0; j < quotas[place]; ++j) {
      draws.push_back(examples[static_cast<size_t>(j) % examples.size()]);
    }
    ++place;
  }
  return draws;
}

}  // namespace lacuna
