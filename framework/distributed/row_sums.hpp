// RowSums: gradients by rows, summed over the shards of all processes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/distributed/array_sum.hpp"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/framework/param/row_gradient.h"

namespace lacuna {

/// What the shards of one batch give by rows. Sums are formed in the shards' tree, as those of
/// other gradients are.
class RowSums {
 public:
  /// A batch's backward pass begins, of shards first, …, last − 1 here.
  void begin(int64_t first, int64_t last);
  void add(Parameter& parameter, int64_t shard, RowGradient gradient);
  /// Gives parameters their sums over all shards. `communicator` null: those here are all.
  /// *Errors:* StateError when a parameter has gradients of some shards alone. *Cost:* each process
  /// sends what it has of its shards to each other one, and adds up what all have. Collective.
  void finish(Communicator* communicator, const ShardOwners& owners,
              const std::function<int()>& next_tag);

 private:
  using Sum = ShardSum<RowGradient, JoinRowGradients>;
  // A parameter's shards; several uses of one shard are joined first.
  struct Collected {
    Parameter* parameter = nullptr;
    std::map<int64_t, RowGradient> by_shard;
    std::vector<int64_t> contributions;
  };

  void finish_one(Collected& collected, Communicator* communicator, const ShardOwners& owners,
                  const std::function<int()>& next_tag) const;

  int64_t first_ = 0, last_ = 0;
  std::map<std::string, Collected> collected_;  // by name: all processes send in the same order
};

}  // namespace lacuna
