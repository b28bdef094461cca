// NormGroup: the sums that the backward pass of a batch normalization needs over all shards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/kernels/images/batch_norm.hpp"

namespace lacuna {

/// The shards of one normalization. Each has two nodes: the outer nodes of all shards run before
/// the inner ones, whose places were reserved before any operation after the normalization. So when
/// the first inner node runs, all sums are known.
class NormGroup {
 public:
  explicit NormGroup(NormShards shards);

  int64_t shard(size_t member) const { return shards_.indices[member]; }
  /// The number of this computation of the normalization for a shard: each has its own nodes.
  /// *Errors:* StateError beyond the fourth.
  size_t take_use(size_t member);
  /// The inner node's place in the order of creation.
  uint64_t place(size_t use, size_t member) const { return uses_[use].places[member]; }
  void set_sums(size_t use, size_t member, NormGradientSums sums) {
    uses_[use].own[member] = std::move(sums);
  }
  const NormGradientSums& own_sums(size_t use, size_t member) const {
    return uses_[use].own[member];
  }
  /// The sums of all shards, also of other processes: the first call exchanges them.
  const NormGradientSums& sums(size_t use);

 private:
  static constexpr size_t kMostUses = 4;
  struct Use {
    std::vector<uint64_t> places;
    std::vector<NormGradientSums> own;
    std::optional<NormGradientSums> all;
  };

  NormShards shards_;
  std::vector<size_t> used_;
  std::array<Use, kMostUses> uses_;
};

}  // namespace lacuna
