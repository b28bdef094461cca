// Shared by layouts that run on streams of nonzeros (kernels/csr/csr.hpp): their products on
// tensors, and the transposed stream of the input gradient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// From this number of features on, slabs of a few examples take too much memory.
inline constexpr int64_t kManyFeatures = 1 << 20;

/// The storage order in which a stream's products of `batch` examples run; `features` is the larger
/// side of the weight.
Order csr_order(int64_t batch, int64_t features);

/// Returns the tensor in slabs, with zeros in the padding.
Tensor in_slabs(const Tensor& tensor);

/// Y = X Wᵀ + bias. *Shapes:* x [..., columns] in either order, bias [rows] or undefined →
/// [..., rows].
Tensor csr_forward(const CsrStream& stream, std::span<const float> values, const Tensor& x,
                   const Tensor& bias);

/// gradient = dYᵀ X at the nonzeros, in stream order. *Shapes:* dy [..., rows], x [..., columns].
void csr_weight_gradient(const CsrStream& stream, const Tensor& dy, const Tensor& x,
                         Accumulate accumulate, std::span<float> gradient);

/// The transpose of a matrix with `columns` columns, from its elements in row-major order: the
/// beginnings of the rows, the columns, and the places of the values. *Cost:* O(nnz).
CsrTransposed transposed_csr(int64_t columns, const std::vector<int64_t>& row_begin,
                             Array<uint32_t> column_of, Array<uint32_t> value_of);

/// dX = dY W with the transposed matrix. *Shapes:* dy [..., rows] → [..., columns].
Tensor csr_input_gradient(const WeightView& weight, const CsrTransposed& transposed,
                          const Tensor& dy);

}  // namespace lacuna
