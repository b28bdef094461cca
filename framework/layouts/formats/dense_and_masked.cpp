// The two layouts that store every position: dense, and masked (dense products, then selection).
#include <algorithm>
#include <utility>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/conv/channel_products.hpp"
#include "lacuna/framework/kernels/conv/every_tap.hpp"
#include "lacuna/framework/kernels/dense/convolution.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/dense/outer_products.hpp"
#include "lacuna/framework/kernels/pointwise/mask.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/batch_sums.hpp"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

bool are_in_slabs(const Tensor& images) { return images.order() == Order::ImageSlabs; }

// With zeros for the missing examples of the last slab.
Tensor with_clear_rest(const Tensor& slabs) {
  Tensor clear = slabs;
  if (slabs.shape()[0] % kImageSlabWidth != 0) clear.clear_padding();
  return clear;
}

/// Convolutions of weights that store every position. Kernels of 1×1, and those of few inputs, run
/// directly on the image slabs of sparse convolutions.
class DenseConvolutions final : public ConvolutionProducts {
 public:
  Order order(const ConvolutionShape& shape) const override {
    return dense_image_order(shape.in_channels);
  }

  Tensor forward(const WeightView& weight, const ConvolutionShape& shape, const Tensor& x,
                 const Tensor& bias, ChannelStatistics* statistics) const override {
    const float* start = bias.defined() ? bias.data() : nullptr;
    if (are_in_slabs(x) && has_channel_products(shape)) {
      return channel_products(shape, weight.values.data(), x, start);
    }
    if (are_in_slabs(x) && has_every_tap_products(shape)) {
      return sparse_convolution(of_every_tap(shape), weight.values, x, start, statistics);
    }
    return dense_convolution(shape, shape.algorithms.forward, weight.values.data(), x, start);
  }

  Tensor input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                        const Tensor& dy) const override {
    if (are_in_slabs(dy) && has_channel_products(shape)) {
      return channel_input_gradient(shape, weight.values.data(), dy);
    }
    if (are_in_slabs(dy) && has_every_tap_products(shape)) {
      return sparse_convolution_input_gradient(of_every_tap(shape), weight.values, dy);
    }
    return dense_convolution_input_gradient(shape, shape.algorithms.input_gradient,
                                            weight.values.data(), dy);
  }

  void weight_gradient(const Pattern& pattern, const ConvolutionShape& shape, const Tensor& dy,
                       const Tensor& x, Accumulate accumulate,
                       std::span<float> gradient) const override {
    if (are_in_slabs(x) && are_in_slabs(dy) && has_channel_products(shape)) {
      channel_weight_gradient(shape, with_clear_rest(dy), with_clear_rest(x), accumulate, gradient);
    } else if (are_in_slabs(x) && are_in_slabs(dy) && has_every_tap_products(shape)) {
      sparse_convolution_weight_gradient(of_every_tap(shape), with_clear_rest(dy),
                                         with_clear_rest(x), accumulate, gradient,
                                         BatchSums::claim(dy));
    } else {
      dense_convolution_weight_gradient(shape, shape.algorithms.weight_gradient, dy, x, accumulate,
                                        gradient);
    }
    pattern.layout().prune(pattern, gradient);
  }
};

class DenseLayout : public Layout {
 public:
  std::string_view name() const override { return "dense"; }

  std::shared_ptr<const PatternIndex> make_index(const Shape&, const Positions&) const override {
    return nullptr;
  }

  Positions positions(const Pattern& pattern) const override {
    return Positions::all(pattern.shape());
  }

  int64_t stored_size(const Pattern& pattern) const override { return pattern.numel(); }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    const int64_t out = weight.pattern.shape()[0], in = weight.pattern.shape()[1];
    const Tensor rows = reordered(x, Order::RowMajor);
    Tensor y = Tensor::empty(x.shape().with_features(out));
    gemm({.m = x.shape().batch(),
          .n = out,
          .k = in,
          .transpose_b = Transpose::Yes,
          .a = rows.data(),
          .b = weight.values.data(),
          .c = y.mutable_data(),
          .bias = bias.defined() ? bias.data() : nullptr});
    return y;
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    const int64_t out = weight.pattern.shape()[0], in = weight.pattern.shape()[1];
    const Tensor rows = reordered(dy, Order::RowMajor);
    Tensor dx = Tensor::empty(dy.shape().with_features(in));
    gemm({.m = dy.shape().batch(),
          .n = in,
          .k = out,
          .a = rows.data(),
          .b = weight.values.data(),
          .c = dx.mutable_data()});
    return dx;
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    const int64_t out = pattern.shape()[0], in = pattern.shape()[1];
    const Tensor dy_rows = reordered(dy, Order::RowMajor), x_rows = reordered(x, Order::RowMajor);
    gemm({.m = out,
          .n = in,
          .k = x.shape().batch(),
          .transpose_a = Transpose::Yes,
          .a = dy_rows.data(),
          .b = x_rows.data(),
          .c = gradient.data(),
          .beta = accumulate == Accumulate::Yes ? 1.0f : 0.0f});
    prune(pattern, gradient);
  }

  const ConvolutionProducts& convolutions(const ConvolutionShape&) const override {
    static const DenseConvolutions products;
    return products;
  }

  void compact(const Pattern&, std::span<const float> stored,
               std::span<float> elements) const override {
    std::ranges::copy(stored, elements.begin());
  }

  void expand(const Pattern&, std::span<const float> elements,
              std::span<float> stored) const override {
    std::ranges::copy(elements, stored.begin());
  }

  Tensor to_dense(const Pattern& pattern, std::span<const float> values) const override {
    return Tensor::from(pattern.shape(), values);
  }

  void from_dense(const Pattern& pattern, std::span<const float> dense,
                  std::span<float> values) const override {
    std::ranges::copy(dense, values.begin());
    prune(pattern, values);
  }
};

struct MaskIndex final : PatternIndex {
  explicit MaskIndex(BitMask mask) : bits(std::move(mask)) {}
  int64_t bytes() const override {
    return static_cast<int64_t>(bits.words().size() * sizeof(uint64_t));
  }
  const BitMask* mask() const override { return &bits; }

  const BitMask bits;
};

const BitMask& mask_of(const Pattern& pattern) { return pattern.index_as<MaskIndex>().bits; }

// Up to this number of examples, the masked gradient takes one pass over memory.
constexpr int64_t kFewExamplesMasked = 32;

class MaskedLayout final : public DenseLayout {
 public:
  std::string_view name() const override { return "masked"; }

  std::shared_ptr<const PatternIndex> make_index(const Shape&,
                                                 const Positions& positions) const override {
    return std::make_shared<const MaskIndex>(positions.to_mask());
  }

  std::shared_ptr<const PatternIndex> make_index_of_mask(const Shape&,
                                                         const BitMask& mask) const override {
    return std::make_shared<const MaskIndex>(mask);
  }

  Positions positions(const Pattern& pattern) const override {
    return Positions::of(pattern.shape(), mask_of(pattern));
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    const int64_t batch = x.shape().batch();
    if (batch > kFewExamplesMasked) {
      return DenseLayout::weight_gradient(pattern, dy, x, accumulate, gradient);
    }
    const Tensor dy_rows = reordered(dy, Order::RowMajor), x_rows = reordered(x, Order::RowMajor);
    masked_outer_products(mask_of(pattern), batch, pattern.shape()[0], pattern.shape()[1],
                          dy_rows.data(), x_rows.data(), accumulate, gradient.data());
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    auto next = elements.begin();
    mask_of(pattern).for_each([&](int64_t i) { *next++ = stored[static_cast<size_t>(i)]; });
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    std::ranges::fill(stored, 0.0f);
    auto next = elements.begin();
    mask_of(pattern).for_each([&](int64_t i) { stored[static_cast<size_t>(i)] = *next++; });
  }

  void prune(const Pattern& pattern, std::span<float> values) const override {
    select_by_mask(mask_of(pattern), values);
  }
};

}  // namespace

const Layout& dense_layout() {
  static const DenseLayout layout;
  return layout;
}

const Layout& masked_layout() {
  static const MaskedLayout layout;
  return layout;
}

}  // namespace lacuna
