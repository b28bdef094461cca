// The three products of a linear layer whose activations are an N:M matrix and whose weight is
// dense: those of nm.hpp with activations and weight exchanged.
//
// The matrix has one row per example and one column per feature; the lanes are outputs. So weight,
// outputs and output gradients are in slabs of 64 outputs. In a slab, 64 outputs of an example (or
// their gradients) are contiguous, as in row-major memory. Each sum has one order for any number of
// threads.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

// Slabs begin at a multiple of 64 bytes, as every Buffer does.

/// Floats of a weight [out, in] in slabs of outputs: [⌈out / 64⌉][in][64].
int64_t output_slabs_size(int64_t out, int64_t in);
/// Converts the weight to this order, with zero padding. *Cost:* one pass.
void weight_to_output_slabs(const float* weight, int64_t out, int64_t in, float* slabs);
/// Converts row-major activations [batch, out] to slabs of features: [⌈out / 64⌉][batch][64], with
/// zero padding. *Cost:* one pass.
void rows_to_output_slabs(const float* rows, int64_t batch, int64_t out, float* slabs);

/// A weight's slabs of outputs and, if they are not written yet, their source: each slab is
/// converted just before the product needs it, while it is in the cache.
struct OutputSlabs {
  float* slabs = nullptr;
  const float* rows = nullptr;  ///< the weight [out, in], row-major; null: the slabs are current
};

/// Y = X Wᵀ + bias, row-major. *Shapes:* x [batch, in] with its values by slot, weight as above,
/// bias [out] or null, y [batch, out]. *Cost:* 2 · slots · out operations.
void nm_activation_product(const NmMatrix& x, const float* values, const OutputSlabs& weight,
                           int64_t out, const float* bias, float* y);

/// dX = dY W only in the slots of x; zero in unused ones. *Shapes:* dy and weight in slabs of
/// outputs.
void nm_activation_input_gradient(const NmMatrix& x, const float* dy, const float* weight,
                                  int64_t out, float* gradient);

/// dW = dYᵀ X, row-major, written or added. *Shapes:* x [batch, in] row-major, whose zeros are
/// omitted, dy in slabs of outputs, gradient [out, in]. *Cost:* 2 · nnz · out operations, and a
/// stream of the nonzeros (feature_stream.hpp) for one or two thousand examples at a time.
void nm_activation_weight_gradient(const float* x, int64_t batch, int64_t in, const float* dy,
                                   int64_t out, Accumulate accumulate, float* gradient);

}  // namespace lacuna
