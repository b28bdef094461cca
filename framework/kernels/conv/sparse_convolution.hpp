// The three products of a convolution whose weight is stored by its nonzeros, on image slabs.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/conv/conv_plan.hpp"
#include "lacuna/framework/kernels/conv/tap_stream.hpp"
#include "lacuna/framework/kernels/images/batch_norm.hpp"

namespace lacuna {

/// Nonzeros of a weight [rows, columns] by rows, columns ascending.
struct CsrPositions {
  std::span<const int64_t> row_begin;  ///< rows + 1
  std::span<const uint32_t> column;    ///< channel · taps + tap
};

/// What the products need to know of a weight's positions, for one size of images. Any batch.
struct SparseConvolution {
  ConvPlan plan;
  TapStream forward;     ///< over input planes, for each output channel
  TapStream transposed;  ///< over output channels, for each phase of an input channel
  int64_t bytes() const { return forward.bytes() + transposed.bytes(); }
};

/// *Requires* one group. *Cost:* O(nnz).
SparseConvolution make_sparse_convolution(const ConvolutionShape& shape,
                                          const CsrPositions& positions);

/// y = w ∗ x + bias. `values` are ascending by flat index; bias [out_channels] or null.
/// *Shapes:* x [batch, in_channels, image] in image slabs → y [batch, out_channels, output].
/// Where `statistics` is not null they become y's, taken while its parts are in the caches.
Tensor sparse_convolution(const SparseConvolution& convolution, std::span<const float> values,
                          const Tensor& x, const float* bias,
                          ChannelStatistics* statistics = nullptr);
/// dx from dy, both in image slabs.
Tensor sparse_convolution_input_gradient(const SparseConvolution& convolution,
                                         std::span<const float> values, const Tensor& dy);
/// The gradient of the values. `dy_sums` [out_channels], if not null, becomes Σ dy over batch and
/// pixels, which pass by anyway. *Requires* zeros in the padding of both.
void sparse_convolution_weight_gradient(const SparseConvolution& convolution, const Tensor& dy,
                                        const Tensor& x, Accumulate accumulate,
                                        std::span<float> gradient, float* dy_sums = nullptr);

}  // namespace lacuna
