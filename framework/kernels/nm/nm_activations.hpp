// The three products of a linear layer whose activations are an N:M matrix and whose weight is
// dense: those of nm.h, with activations and weight in each other's place.
//
// The matrix has a row for each example and a column for each feature; the lanes are outputs. So
// weight, outputs and output gradients come in slabs of 64 outputs, and of an example's outputs or
// their gradients the slabs hold 64 side by side, as row-major memory does. Each sum is taken in
// one order, whatever the number of threads.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

// Slabs begin at a multiple of 64 bytes, as every Buffer does.

/// Floats of a weight [out, in] in slabs of outputs: [⌈out / 64⌉][in][64].
int64_t output_slabs_size(int64_t out, int64_t in);
/// Writes the weight so, zero in the padding. *Cost:* one pass.
void weight_to_output_slabs(const float* weight, int64_t out, int64_t in, float* slabs);
/// Writes activations [batch, out], row-major, in slabs of features: [⌈out / 64⌉][batch][64], zero
/// in the padding. *Cost:* one pass.
void rows_to_output_slabs(const float* rows, int64_t batch, int64_t out, float* slabs);

/// A weight's slabs of outputs, and where they are not written yet what they are written from: each
/// just before the product needs it, while it is near.
struct OutputSlabs {
  float* slabs = nullptr;
  const float* rows = nullptr;  ///< the weight [out, in], row-major; null: the slabs are up to date
};

/// Y = X Wᵀ + bias, row-major. *Shapes:* x [batch, in] with its values by slot, weight as above,
/// bias [out] or null, y [batch, out]. *Cost:* 2 · slots · out operations.
void nm_activation_product(const NmMatrix& x, const float* values, const OutputSlabs& weight,
                           int64_t out, const float* bias, float* y);

/// dX = dY W in the slots of x alone; zero in unused ones. *Shapes:* dy and weight in slabs of
/// outputs.
void nm_activation_input_gradient(const NmMatrix& x, const float* dy, const float* weight,
                                  int64_t out, float* gradient);

/// dW = dYᵀ X, row-major, or is added to. *Shapes:* x [batch, in] row-major, whose zeros are left
/// out, dy in slabs of outputs, gradient [out, in]. *Cost:* 2 · nnz · out operations, and a stream
/// of the nonzeros (feature_stream.h) of one or two thousand examples at a time.
void nm_activation_weight_gradient(const float* x, int64_t batch, int64_t in, const float* dy,
                                   int64_t out, Accumulate accumulate, float* gradient);

}  // namespace lacuna
