// What the linear benchmark measures: a shape, a sparsity, and operands.
#pragma once

#include <cstdint>

#include "common/operands.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// Operands of a linear layer's three products; row-major unless stated otherwise. All
/// contenders share them, as a layer works on what the one before it has just written, not on a
/// copy of its own.
struct LinearWorkload {
  int64_t batch = 0, in = 0, out = 0;
  double sparsity = 0.0;
  int64_t nnz = 0;
  Tensor x = {};                       ///< [batch, in]
  Tensor dy = {};                      ///< [batch, out]
  Tensor x_slabs = {}, dy_slabs = {};  ///< the same in slabs
  Tensor weight = {};                  ///< [out, in], zero outside the mask
  Tensor bias = {};                    ///< [out]
  BitMask mask = {};                   ///< out · in
  BitMask kept = {};                   ///< batch · in: where x is not zero; none: everywhere

  static LinearWorkload random(int64_t batch, int64_t in, int64_t out, double sparsity,
                               Degrees degrees);
  /// The same operands for a weight that has other positions.
  LinearWorkload with(BitMask positions) const;
  /// The same operands for a dense weight and the n largest activations of each m. Its `nnz` are
  /// the multiply-adds that an example then takes.
  LinearWorkload with_activations(int n, int m) const;
};

}  // namespace lacuna::bench
