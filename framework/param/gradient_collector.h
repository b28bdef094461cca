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

/// left += right, element by element. *Shapes:* any, equal.
struct JoinTensors {
  void operator()(Tensor& left, Tensor&& right) const;
};
/// A sum of tensors over shards.
using TensorSum = ShardSum<Tensor, JoinTensors>;

/// Installed on parameters (`Parameter::set_collector`): gradients from a shard's backward pass go
/// to the collector and not to the parameter's gradient, which gets the sum over all shards when
/// they are complete.
class GradientCollector {
 public:
  virtual ~GradientCollector();
  /// Takes a gradient of the shard, aligned to the parameter's pattern. Called in backward.
  virtual void add(Parameter& parameter, int64_t shard, Tensor gradient) = 0;
  /// The same for a gradient by rows.
  virtual void add_rows(Parameter& parameter, int64_t shard, RowGradient gradient) = 0;
  /// The number of the batch whose shards come next, and whether other processes have shards of it.
  virtual int64_t batch() const = 0;
  virtual bool is_shared() const = 0;
  /// total = the sum over all shards of a batch, of which `own` holds those of this process (or
  /// all, if the batch was not shared). All processes that have shards of it must make such calls
  /// in the same order. *Requires* tensors with as many elements as `total`. *Cost:* with N
  /// processes, each sends 2 (N − 1) / N of the array, and waits.
  virtual void sum(TensorSum own, bool was_shared, std::span<float> total) = 0;

  /// The processes that can divide the rows of such sums; null if there is only one process.
  virtual ShardPeers* peers() const = 0;
  /// The same sum of a different array for each process, which gets only its own: `own` has this
  /// process's shards of each array, by rank. Empty ones have no elements. *Cost:* each process
  /// sends the others' arrays once.
  virtual void sum_scattered(std::vector<TensorSum> own, bool was_shared,
                             std::span<float> total) = 0;
};

}  // namespace lacuna
