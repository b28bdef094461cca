// The csr layout of convolution weights: nonzeros ascending by flat index, and for each size of
// images the streams that the products run on.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "lacuna/framework/kernels/conv/sparse_convolution.hpp"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {

/// Positions by rows. Values are stored in their order.
class CsrConvolutionIndex final : public PatternIndex {
 public:
  CsrConvolutionIndex(const Shape& shape, Positions positions);

  int64_t bytes() const override;
  const Positions& positions() const { return positions_; }
  /// The streams for images of that size, made when first asked for. Any number of threads may ask.
  const SparseConvolution& products(const ConvolutionShape& shape) const;

 private:
  Positions positions_;
  mutable std::mutex mutex_;
  mutable std::list<SparseConvolution> made_;  // each stays where it is
};

/// Whether a convolution runs on its nonzeros: others (grouped ones) run dense.
bool runs_on_nonzeros(const ConvolutionShape& shape);

/// The products; images are converted to image slabs where they are not. *Requires*
/// `runs_on_nonzeros`.
Tensor csr_convolve(const WeightView& weight, const ConvolutionShape& shape, const Tensor& x,
                    const Tensor& bias, ChannelStatistics* statistics = nullptr);
Tensor csr_convolution_input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                                      const Tensor& dy);
void csr_convolution_weight_gradient(const Pattern& pattern, const ConvolutionShape& shape,
                                     const Tensor& dy, const Tensor& x, Accumulate accumulate,
                                     std::span<float> gradient);

}  // namespace lacuna
