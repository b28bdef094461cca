// Sums of an output gradient over its batch, which some weight gradients compute in the same pass.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// While it exists, products that this thread computes from that output gradient may leave its sums
/// here, so that a bias's gradient needs no separate pass. If no product did, the caller computes
/// the sums itself.
class BatchSums {
 public:
  /// *Shapes:* dy [..., features], or images [batch, features, ...]. Undefined: no sums are
  /// requested.
  BatchSums(Tensor dy, int64_t features);
  ~BatchSums();
  BatchSums(const BatchSums&) = delete;
  BatchSums& operator=(const BatchSums&) = delete;

  /// Where Σ dy over the batch must be written, [features], if it is requested; else null. The
  /// caller must then write it.
  static float* claim(const Tensor& dy);
  /// The sums; undefined if no product computed them.
  const Tensor& made() const { return sums_; }

 private:
  BatchSums* outer_;
  Tensor dy_;
  int64_t features_;
  Tensor sums_;
};

}  // namespace lacuna
