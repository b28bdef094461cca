// ShardedBatch: a batch that modules process shard by shard, layer after layer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/core/shards.h"

namespace lacuna {

/// A part of a batch that this process computes.
struct BatchShard {
  int64_t index = 0;                    ///< in the tree that shards are summed in
  ExampleRange examples = {};           ///< in the batch
  const NamedTensors* named = nullptr;  ///< integers in addition to its inputs; null: none
};

/// How a batch normalization sees the shards while it trains.
enum class NormScope {
  Batch,    ///< all shards of all processes as one batch
  Process,  ///< those of this process
};

/// While it exists, `Module::forward_shards` runs these shards in this thread. Only the innermost
/// one counts.
class ShardedBatch {
 public:
  /// `peers`: the processes that have the batch's other shards; null: there are no others.
  /// *Lifetime:* peers and the shards' named tensors outlive this, and the backward pass.
  ShardedBatch(std::vector<BatchShard> shards, ShardPeers* peers,
               NormScope norms = NormScope::Batch);
  ~ShardedBatch();
  ShardedBatch(const ShardedBatch&) = delete;
  ShardedBatch& operator=(const ShardedBatch&) = delete;

  const std::vector<BatchShard>& shards() const { return shards_; }
  ShardPeers* peers() const { return peers_; }
  NormScope norms() const { return norms_; }
  /// A number that differs between the sharded batches of the process.
  int64_t number() const { return number_; }

 private:
  std::vector<BatchShard> shards_;
  ShardPeers* peers_;
  NormScope norms_;
  int64_t number_;
  const ShardedBatch* saved_;
};

/// The batch whose shards run in this thread; null if there is none.
const ShardedBatch* sharded_batch();
/// The index in the batch of the first example of the current shard; 0 outside of shards. Random
/// draws for an example depend on its position in the batch.
int64_t first_example();

/// Calls `compute` for each shard of the batch, with its position among those of this process, in
/// the scope of the shard and of its named inputs. *Requires* a sharded batch.
void for_each_shard(const std::function<void(size_t shard)>& compute);

/// Numbers of a module's random draws: one after the other, and the same for all shards of a batch.
class DrawCounter {
 public:
  /// The number of this forward call.
  int64_t next();
  /// Numbers returned so far; a checkpoint stores this.
  int64_t count() const { return count_; }
  void set(int64_t count);

 private:
  int64_t count_ = 0;
  int64_t batch_ = -1, shard_ = -1;  // of the last call
  int64_t begin_ = 0;                // first number of that batch
  int64_t calls_ = 0;                // of that shard
};

}  // namespace lacuna
