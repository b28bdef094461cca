// The sums of an output gradient over its batch, which some weight gradients come by on the way.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// While it lives, products that this thread computes from that output gradient may leave its sums
/// here: a bias's gradient then costs no pass of its own. Who asks sums up by himself where nobody
/// has.
class BatchSums {
 public:
  /// *Shapes:* dy [..., features], or images [batch, features, ...]. Undefined: nothing is asked
  /// for.
  BatchSums(Tensor dy, int64_t features);
  ~BatchSums();
  BatchSums(const BatchSums&) = delete;
  BatchSums& operator=(const BatchSums&) = delete;

  /// Where Σ dy over the batch is to be written, [features], if somebody asks for it; else null.
  /// Who gets it must write it.
  static float* claim(const Tensor& dy);
  /// The sums; undefined where nobody has made them.
  const Tensor& made() const { return sums_; }

 private:
  BatchSums* outer_;
  Tensor dy_;
  int64_t features_;
  Tensor sums_;
};

}  // namespace lacuna
