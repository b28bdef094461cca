// GradientCollector: sums the gradients of a batch's shards, in one process or over several.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/row_gradient.h"

namespace lacuna {

class Parameter;

/// left += right, element by element. *Shapes:* any, the same of both.
struct JoinTensors {
  void operator()(Tensor& left, Tensor&& right) const;
};
/// A sum of tensors over shards.
using TensorSum = ShardSum<Tensor, JoinTensors>;

/// Installed on parameters (`Parameter::set_collector`): what a shard's backward pass gives for a
/// parameter goes there and not into the parameter's gradient, which gets the sum over all shards
/// when they are through.
class GradientCollector {
 public:
  virtual ~GradientCollector();
  /// Takes a gradient of the shard, aligned to the parameter's pattern. Called in backward.
  virtual void add(Parameter& parameter, int64_t shard, Tensor gradient) = 0;
  /// The same of a gradient by rows.
  virtual void add_rows(Parameter& parameter, int64_t shard, RowGradient gradient) = 0;
  /// A number of the batch whose shards come now, and whether other processes have shards of it.
  virtual int64_t batch() const = 0;
  virtual bool is_shared() const = 0;
  /// total = the sum over all shards of a batch, of which `own` holds those of this process; of one
  /// that was not shared, all. Each process that has shards of it must call it, in the same order
  /// among such calls. *Requires* tensors of as many elements as `total`. *Cost:* over N processes
  /// each sends 2 (N − 1) / N of the array, and waits.
  virtual void sum(TensorSum own, bool was_shared, std::span<float> total) = 0;

  /// The processes among which the rows of such sums can be shared; null: this one is alone.
  virtual ShardPeers* peers() const = 0;
  /// The same sum of another array for each process, of which each gets its own alone: `own` has
  /// the shards' here of each array, by rank. Empty ones are of no elements. *Cost:* each sends the
  /// others' arrays once.
  virtual void sum_scattered(std::vector<TensorSum> own, bool was_shared,
                             std::span<float> total) = 0;
};

}  // namespace lacuna
