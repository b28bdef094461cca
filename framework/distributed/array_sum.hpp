// ArraySum: one array summed over the shards of all processes, while they go on computing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/distributed/data_parallel.hpp"
#include "lacuna/framework/param/gradient_collector.h"

namespace lacuna {

/// Which shards are whose, in the order of the processes.
class ShardOwners {
 public:
  /// *Requires* that the processes divide the shards.
  ShardOwners(int64_t shards, int processes);

  int64_t shards() const { return shards_; }
  int processes() const { return static_cast<int>(nodes_.size()); }
  int64_t first(int process) const { return process * shards_ / processes(); }
  /// What a process's shards are summed to before anybody else is asked.
  const std::vector<ShardNode>& nodes(int process) const {
    return nodes_[static_cast<size_t>(process)];
  }

 private:
  int64_t shards_;
  std::vector<std::vector<ShardNode>> nodes_;
};

/// In the shards' tree: each process owns a part of the array, is sent that part by the others,
/// adds it up in the shards' tree, and sends the sum back. So each sends 2 (N − 1) / N of the array
/// (times the nodes of its shards, where these are several), whatever the number of shards. In any
/// order: as MPI does it. Nothing waits but `wait`: `is_done` brings it on.
class ArraySum {
 public:
  /// `own`: an array for each of this process's nodes, of one size; the sum takes them over.
  /// `tag` and the next one are used. All processes must begin the same sums in the same order.
  ArraySum(Communicator& communicator, const ShardOwners& owners, std::vector<Tensor> own, int tag,
           SumOrder order);
  ArraySum(const ArraySum&) = delete;
  ArraySum& operator=(const ArraySum&) = delete;

  bool is_done();
  void wait();
  /// *Requires* that it is done.
  const Tensor& total() const { return total_; }

 private:
  struct Part {
    int64_t begin = 0, size = 0;
  };
  Part part_of(int process) const;
  void send_parts();
  void add_up();

  Communicator& communicator_;
  const ShardOwners& owners_;
  int tag_;
  Tensor total_;                             // before the messages, which write into the arrays
  std::vector<Tensor> own_;                  // by node
  std::vector<std::vector<Tensor>> others_;  // by process and node: this process's part
  bool has_added_ = false;
  std::unique_ptr<PendingMessages> messages_;
};

}  // namespace lacuna
