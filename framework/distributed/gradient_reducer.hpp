// GradientReducer: sums the gradients of shards, and sends them on their way during backward.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "lacuna/framework/distributed/array_sum.hpp"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/distributed/row_sums.hpp"
#include "lacuna/framework/param/gradient_collector.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// The collector of all parameters of a model. A parameter's gradients of this process's shards are
/// summed as they come. When all are there the sum is sent with others in a bucket, as soon as that
/// is full; buckets go on while backward does. A bucket is full with `bucket_floats`, or with an
/// eighth of what the batch before has sent, where that is less: the last one, which nothing hides,
/// is then a small part. A parameter that is used several times in a forward pass is summed and
/// sent for each use, but for those named in `used_often`. Gradients by rows are sent when backward
/// is through: each process sends the rows of its shards to all others.
class GradientReducer final : public GradientCollector {
 public:
  struct Options {
    int64_t bucket_floats = int64_t{1} << 16;
    SumOrder order = SumOrder::Tree;
    /// How often a forward pass uses these: a shard's gradients of one are added before they are
    /// summed over shards, for which each shard's is held until it is complete.
    std::map<const Parameter*, int> used_often = {};
  };
  /// `communicator` null: one process. *Lifetime:* both outlive it.
  GradientReducer(Communicator* communicator, const ShardOwners& owners, Options options);

  /// A batch's backward pass begins, of shards first, …, last − 1. Not shared: all processes
  /// compute all of its shards, and nothing is sent.
  void begin(int64_t first, int64_t last, bool is_shared);
  /// Waits for what is under way, and gives parameters their gradients. *Errors:* StateError when a
  /// parameter has gradients of some shards alone.
  void finish();

  void add(Parameter& parameter, int64_t shard, Tensor gradient) override;
  void add_rows(Parameter& parameter, int64_t shard, RowGradient gradient) override;
  int64_t batch() const override { return batch_; }
  bool is_shared() const override { return is_shared_; }
  void sum(TensorSum own, bool was_shared, std::span<float> total) override;

  ShardPeers* peers() const override { return communicator_; }
  void sum_scattered(std::vector<TensorSum> own, bool was_shared, std::span<float> total) override;

  /// Seconds that `finish` has waited for others.
  double seconds_waited() const { return seconds_waited_; }

 private:
  // One use of a parameter, over the shards.
  struct Round {
    TensorSum sum{JoinTensors()};
    int64_t arrived = 0;
  };
  struct Collected {
    std::vector<int64_t> contributions;  // by shard here
    std::vector<Tensor> held;            // by shard, where it is used often
    std::vector<Round> rounds;
  };
  struct Entry {
    Parameter* parameter;
    int64_t floats;
  };
  struct Bucket {
    std::vector<Entry> entries;
    int64_t floats = 0;
    std::vector<std::vector<Tensor>> arrays;  // by node and entry
    std::unique_ptr<ArraySum> sum;
  };

  void complete(Parameter& parameter, Round& round);
  void launch();
  void deliver(const Bucket& bucket) const;
  void bring_on();
  int next_tag();
  int64_t full_bucket() const;

  Communicator* communicator_;
  const ShardOwners& owners_;
  Options options_;
  int64_t first_ = 0, last_ = 0;
  bool is_shared_ = false;
  int64_t batch_ = 0;
  std::map<Parameter*, Collected> collected_;
  RowSums row_sums_;
  Bucket filling_;
  int64_t floats_ = 0, floats_before_ = 0;  // sent of this batch, and of the one before
  std::deque<Bucket> under_way_;            // in the order in which they were begun
  int tag_ = 0;
  double seconds_waited_ = 0.0;
};

}  // namespace lacuna
