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

/// The shards of one normalization. Each has two nodes: the outer ones of all shards run before the
/// inner ones, whose places are kept from before any operation behind the normalization; so when
/// the first inner node runs all sums are known.
class NormGroup {
 public:
  explicit NormGroup(NormShards shards);

  int64_t shard(size_t member) const { return shards_.indices[member]; }
  /// Which computation of the normalization this is for a shard: each has nodes of its own.
  /// *Errors:* StateError beyond the fourth.
  size_t take_use(size_t member);
  /// Where the inner node stands in the order of creation.
  uint64_t place(size_t use, size_t member) const { return uses_[use].places[member]; }
  void set_sums(size_t use, size_t member, NormGradientSums sums) {
    uses_[use].own[member] = std::move(sums);
  }
  const NormGradientSums& own_sums(size_t use, size_t member) const {
    return uses_[use].own[member];
  }
  /// Of all shards, those of other processes too: the first call asks them.
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
