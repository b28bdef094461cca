// DataParallel: a model trained by several processes, each on a share of every batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/sharded_batch.h"

namespace lacuna {

/// In which order gradients are summed over processes.
enum class SumOrder {
  Tree,  ///< the shards', whatever the number of processes
  Any,   ///< what MPI makes of MPI_Iallreduce: fewer messages, other last digits
};

struct DataParallelOptions {
  /// Parts that each batch is cut into. Results are a function of their number, and not of the
  /// number of processes, which must divide it. At least 1, default 8.
  int64_t shards = 8;
  /// What batch normalizations normalize over.
  NormScope norms = NormScope::Batch;
  /// Of fewer than four processes Any is Tree, which takes as few messages then.
  SumOrder order = SumOrder::Tree;
  /// Gradients are sent by so many at least, but for the last ones; by an eighth of all where that
  /// is less (but 4096 numbers, and 1024 for each process, at least). At least 1.
  int64_t bucket_floats = int64_t{1} << 16;
};

/// Sums the gradients of a batch's shards over processes, in a tree that is the same for any number
/// of them. Each process holds the whole model, computes its shards, and makes the same optimizer
/// step. A step:
///
///     for (each shard of `first_shard()` … `last_shard() − 1`) gather shard_examples(…)
///     DataParallel::Step step(parallel, shards, parallel.shards());
///     std::vector<Variable> outputs = model.forward_shards(inputs);
///     … losses, each divided by the whole batch's number of examples, in their shards' names …
///     backward(losses, ones);
///     step.finish();
///     optimizer.step();
class DataParallel {
 public:
  /// `communicator`: join_job()'s; null: this process computes all shards. *Errors:* ConfigError
  /// that names the numbers of processes that divide the shards, where theirs does not.
  DataParallel(Module& model, std::shared_ptr<Communicator> communicator,
               DataParallelOptions options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  int rank() const;
  int processes() const;
  int64_t shards() const;
  /// This process's: [first_shard, last_shard).
  int64_t first_shard() const;
  int64_t last_shard() const;
  /// Null in one process.
  Communicator* communicator() const;

  /// A batch's forward and backward pass: while it lives, its shards run in this thread.
  class Step {
   public:
    /// `shards`: this process's of a batch that is cut into `batch_shards`; of one that is cut into
    /// fewer than `DataParallel::shards()`, because it has fewer examples, all of them, which each
    /// process then computes by itself. *Errors:* StateError on others.
    Step(DataParallel& parallel, const std::vector<BatchShard>& shards, int64_t batch_shards);
    /// The processes that have other shards of this batch; null where there are none.
    ShardPeers* peers() const { return batch_.peers(); }
    /// Numbers of the shards here, joined over all (core/shards.h). Collective, where shared.
    std::vector<double> join(std::vector<ShardValues> own) const;
    /// Waits until parameters have their gradients, after backward. *Errors:* StateError.
    void finish();

   private:
    DataParallel& parallel_;
    ShardedBatch batch_;
  };

  /// Numbers of this process's shards of a batch that is cut into `batch_shards`, joined over all
  /// before its step begins. Collective, where the batch is shared.
  std::vector<double> join(std::vector<ShardValues> own, int64_t batch_shards) const;

  /// Seconds that steps have waited for messages after backward.
  double seconds_waited() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// *Errors:* ConfigError that names the numbers of processes that divide the shards, where these do
/// not.
void require_processes_divide(int64_t shards, int processes);

/// Throws unless all processes state the same: for what must not differ between them. `what` are
/// pairs of a name and a text. *Errors:* StateError in all processes that names what differs, and
/// each process's. Collective.
struct Agreed {
  std::string name;
  std::string text;
};
void require_agreement(Communicator& communicator, std::span<const Agreed> what);

}  // namespace lacuna
