#include "lacuna/framework/layouts/formats/csr_convolution.hpp"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

// What streams are made for: sizes, those of any batch.
ConvolutionShape sizes_of(ConvolutionShape shape) {
  shape.batch = 0;
  shape.algorithms = {};
  return shape;
}

const SparseConvolution& products_of(const Pattern& pattern, const ConvolutionShape& shape) {
  return pattern.index_as<CsrConvolutionIndex>().products(shape);
}

Tensor in_slabs(const Tensor& images) { return reordered(images, Order::ImageSlabs); }

// With zeros for the examples that the last slab lacks.
Tensor in_clear_slabs(const Tensor& images) {
  Tensor slabs = in_slabs(images);
  if (images.shape()[0] % kImageSlabWidth != 0) slabs.clear_padding();
  return slabs;
}

}  // namespace

CsrConvolutionIndex::CsrConvolutionIndex(const Shape&, Positions positions)
    : positions_(std::move(positions)) {}

int64_t CsrConvolutionIndex::bytes() const {
  const std::lock_guard lock(mutex_);
  auto total =
      static_cast<int64_t>(positions_.row_begin().size_bytes() + positions_.column().size_bytes());
  for (const SparseConvolution& convolution : made_) total += convolution.bytes();
  return total;
}

const SparseConvolution& CsrConvolutionIndex::products(const ConvolutionShape& shape) const {
  const ConvolutionShape sizes = sizes_of(shape);
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      made_, [&](const SparseConvolution& c) { return c.plan.shape == sizes; });
  if (found != made_.end()) return *found;
  made_.push_back(make_sparse_convolution(sizes, {positions_.row_begin(), positions_.column()}));
  return made_.back();
}

bool runs_on_nonzeros(const ConvolutionShape& shape) { return shape.groups == 1; }

Tensor csr_convolve(const WeightView& weight, const ConvolutionShape& shape, const Tensor& x,
                    const Tensor& bias, ChannelStatistics* statistics) {
  return sparse_convolution(products_of(weight.pattern, shape), weight.values, in_slabs(x),
                            bias.defined() ? bias.data() : nullptr, statistics);
}

Tensor csr_convolution_input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                                      const Tensor& dy) {
  return sparse_convolution_input_gradient(products_of(weight.pattern, shape), weight.values,
                                           in_slabs(dy));
}

void csr_convolution_weight_gradient(const Pattern& pattern, const ConvolutionShape& shape,
                                     const Tensor& dy, const Tensor& x, Accumulate accumulate,
                                     std::span<float> gradient) {
  sparse_convolution_weight_gradient(products_of(pattern, shape), in_clear_slabs(dy),
                                     in_clear_slabs(x), accumulate, gradient);
}

}  // namespace lacuna
