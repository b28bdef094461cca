#include "lacuna/framework/autograd/ops/norm_group.hpp"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"

namespace lacuna {

NormGroup::NormGroup(NormShards shards)
    : shards_(std::move(shards)), used_(shards_.indices.size()) {
  for (Use& use : uses_) {
    for (size_t i = 0; i < used_.size(); ++i) use.places.push_back(reserve_place());
    use.own.resize(used_.size());
  }
}

size_t NormGroup::take_use(size_t member) {
  if (used_[member] == kMostUses) {
    throw StateError(fmt::format(
        "batch_norm: its result is fused into more than {} operations, which shards do not support",
        kMostUses));
  }
  return used_[member]++;
}

const NormGradientSums& NormGroup::sums(size_t use) {
  Use& u = uses_[use];
  if (u.all) return *u.all;
  std::vector<ShardValues> values;
  for (size_t i = 0; i < u.own.size(); ++i) {
    values.push_back({shard(i), u.own[i].g});
    values.back().values.insert(values.back().values.end(), u.own[i].gx.begin(), u.own[i].gx.end());
  }
  const std::vector<double> joined = join_shards(std::move(values), add_values, shards_.peers);
  const auto half = joined.begin() + static_cast<int64_t>(joined.size() / 2);
  u.all = {{joined.begin(), half}, {half, joined.end()}};
  return *u.all;
}

}  // namespace lacuna
