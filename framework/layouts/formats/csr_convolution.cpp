// The csr layout of convolution weights.
#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/conv/sparse_convolution.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/batch_sums.hpp"
#include "lacuna/framework/layouts/formats/csr_layout.hpp"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

// The sizes for which streams are made, independent of the batch.
ConvolutionShape sizes_of(ConvolutionShape shape) {
  shape.batch = 0;
  shape.algorithms = {};
  return shape;
}

/// Positions by rows. Values are stored in this order.
class CsrConvolutionIndex final : public CsrStorage {
 public:
  explicit CsrConvolutionIndex(Positions positions) : positions_(std::move(positions)) {}

  int64_t bytes() const override {
    const std::lock_guard lock(mutex_);
    auto total = static_cast<int64_t>(positions_.row_begin().size_bytes() +
                                      positions_.column().size_bytes());
    for (const SparseConvolution& convolution : made_) total += convolution.bytes();
    return total;
  }

  Positions positions() const override { return positions_; }
  void compact(std::span<const float> stored, std::span<float> elements) const override {
    std::ranges::copy(stored, elements.begin());
  }
  void expand(std::span<const float> elements, std::span<float> stored) const override {
    std::ranges::copy(elements, stored.begin());
  }

  /// The streams for images of that size, made when first requested, by any thread.
  const SparseConvolution& products(const ConvolutionShape& shape) const {
    const ConvolutionShape sizes = sizes_of(shape);
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        made_, [&](const SparseConvolution& c) { return c.plan.shape == sizes; });
    if (found != made_.end()) return *found;
    made_.push_back(make_sparse_convolution(sizes, {positions_.row_begin(), positions_.column()}));
    return made_.back();
  }

 private:
  Positions positions_;
  mutable std::mutex mutex_;
  mutable std::list<SparseConvolution> made_;  // elements must not move
};

const SparseConvolution& products_of(const Pattern& pattern, const ConvolutionShape& shape) {
  return pattern.index_as<CsrConvolutionIndex>().products(shape);
}

Tensor in_image_slabs(const Tensor& images) { return reordered(images, Order::ImageSlabs); }

// With zeros for the missing examples of the last slab.
Tensor in_clear_slabs(const Tensor& images) {
  Tensor slabs = in_image_slabs(images);
  if (images.shape()[0] % kImageSlabWidth != 0) slabs.clear_padding();
  return slabs;
}

class CsrConvolutions final : public ConvolutionProducts {
 public:
  Order order(const ConvolutionShape&) const override { return Order::ImageSlabs; }

  Tensor forward(const WeightView& weight, const ConvolutionShape& shape, const Tensor& x,
                 const Tensor& bias, ChannelStatistics* statistics) const override {
    return sparse_convolution(products_of(weight.pattern, shape), weight.values, in_image_slabs(x),
                              bias.defined() ? bias.data() : nullptr, statistics);
  }

  Tensor input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                        const Tensor& dy) const override {
    return sparse_convolution_input_gradient(products_of(weight.pattern, shape), weight.values,
                                             in_image_slabs(dy));
  }

  void weight_gradient(const Pattern& pattern, const ConvolutionShape& shape, const Tensor& dy,
                       const Tensor& x, Accumulate accumulate,
                       std::span<float> gradient) const override {
    sparse_convolution_weight_gradient(products_of(pattern, shape), in_clear_slabs(dy),
                                       in_clear_slabs(x), accumulate, gradient,
                                       BatchSums::claim(dy));
  }
};

}  // namespace

std::shared_ptr<const PatternIndex> make_csr_convolution_index(const Positions& positions) {
  return std::make_shared<const CsrConvolutionIndex>(positions);
}

const ConvolutionProducts& csr_convolutions() {
  static const CsrConvolutions products;
  return products;
}

}  // namespace lacuna
