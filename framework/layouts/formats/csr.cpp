// The csr layout: values, gradient and states in stream order, nnz long.
//
// The input gradient is the forward product of the transposed matrix, which has a stream of its own
// and a copy of the values in that order, refreshed when the values have changed. A single example
// needs neither: its input gradient is scattered.
//
// Convolution weights, of rank 3 or 4, are stored by rows (csr_convolution.h).
#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/formats/csr_convolution.hpp"
#include "lacuna/framework/layouts/formats/csr_products.hpp"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

class CsrIndex final : public PatternIndex {
 public:
  CsrIndex(const Shape& shape, const Positions& positions)
      : shape_(shape),
        forward(csr_stream(positions.rows(), positions.columns(), positions.row_begin(),
                           positions.column())) {}

  int64_t bytes() const override { return forward.bytes() + transposed_.bytes(); }

  Positions positions() const {
    std::vector<int64_t> begin = csr_row_begins(forward);
    Array<uint32_t> columns(static_cast<size_t>(forward.nnz));
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    csr_for_each_stretch(forward, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
      uint32_t* into = columns.data() + next[static_cast<size_t>(row)];
      next[static_cast<size_t>(row)] += length;
      const uint16_t* offsets = forward.offsets.data() + value;
      for (int64_t k = 0; k < length; ++k) into[k] = static_cast<uint32_t>(first) + offsets[k];
    });
    return Positions(shape_, std::move(begin), std::move(columns));
  }

  // Built when first needed: a pattern whose layer comes first in a model never needs it.
  const CsrTransposed& transposed() const {
    std::call_once(once_, [&] { transposed_ = csr_transposed(forward); });
    return transposed_;
  }

 private:
  const Shape shape_;
  mutable std::once_flag once_;
  mutable CsrTransposed transposed_;

 public:
  const CsrStream forward;
};

bool is_convolution(const Shape& shape) { return shape.rank() == 3 || shape.rank() == 4; }

const CsrIndex& index_of(const Pattern& pattern) { return pattern.index_as<CsrIndex>(); }

class CsrLayout final : public Layout {
 public:
  std::string_view name() const override { return "csr"; }

  std::shared_ptr<const PatternIndex> make_index(const Shape& shape,
                                                 const Positions& positions) const override {
    constexpr int64_t kMost = int64_t{1} << 31;
    if (positions.count() >= kMost || positions.rows() >= kMost) {
      throw ShapeError(
          fmt::format("layout csr holds fewer than 2^31 nonzeros and rows, {} has {} nonzeros",
                      shape.to_string(), positions.count()));
    }
    if (is_convolution(shape)) {
      return std::make_shared<const CsrConvolutionIndex>(shape, positions);
    }
    return std::make_shared<const CsrIndex>(shape, positions);
  }

  Positions positions(const Pattern& pattern) const override {
    if (is_convolution(pattern.shape())) {
      return pattern.index_as<CsrConvolutionIndex>().positions();
    }
    return index_of(pattern).positions();
  }

  int64_t stored_size(const Pattern& pattern) const override { return pattern.nnz(); }

  Order order(int64_t batch, int64_t features) const override { return csr_order(batch, features); }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    return csr_forward(index_of(weight.pattern).forward, weight.values, x, bias);
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    const CsrIndex& index = index_of(weight.pattern);
    if (dy.shape().batch() == 1 && csr_scatters_row(index.forward)) {
      const Tensor row = reordered(dy, Order::RowMajor);
      Tensor dx = Tensor::empty(dy.shape().with_features(index.forward.columns));
      csr_scatter_row(index.forward, weight.values.data(), row.data(), dx.mutable_data());
      return dx;
    }
    return csr_input_gradient(weight, index.transposed(), dy);
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    csr_weight_gradient(index_of(pattern).forward, dy, x, accumulate, gradient);
  }

  Order image_order(const ConvolutionShape& shape) const override {
    return runs_on_nonzeros(shape) ? Order::ImageSlabs : Layout::image_order(shape);
  }

  Tensor convolve(const WeightView& weight, const ConvolutionShape& shape, const Tensor& x,
                  const Tensor& bias) const override {
    return runs_on_nonzeros(shape) ? csr_convolve(weight, shape, x, bias)
                                   : Layout::convolve(weight, shape, x, bias);
  }

  Tensor convolution_input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                                    const Tensor& dy) const override {
    return runs_on_nonzeros(shape) ? csr_convolution_input_gradient(weight, shape, dy)
                                   : Layout::convolution_input_gradient(weight, shape, dy);
  }

  Tensor convolve_with_statistics(const WeightView& weight, const ConvolutionShape& shape,
                                  const Tensor& x, const Tensor& bias,
                                  ChannelStatistics& statistics) const override {
    return runs_on_nonzeros(shape)
               ? csr_convolve(weight, shape, x, bias, &statistics)
               : Layout::convolve_with_statistics(weight, shape, x, bias, statistics);
  }

  void convolution_weight_gradient(const Pattern& pattern, const ConvolutionShape& shape,
                                   const Tensor& dy, const Tensor& x, Accumulate accumulate,
                                   std::span<float> gradient) const override {
    if (runs_on_nonzeros(shape)) {
      csr_convolution_weight_gradient(pattern, shape, dy, x, accumulate, gradient);
    } else {
      Layout::convolution_weight_gradient(pattern, shape, dy, x, accumulate, gradient);
    }
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    if (is_convolution(pattern.shape())) {
      std::ranges::copy(stored, elements.begin());
      return;
    }
    for_each_stretch(pattern, [&](int64_t value, int64_t element, int64_t length) {
      const float* from = stored.data() + value;
      float* into = elements.data() + element;
      for (int64_t k = 0; k < length; ++k) into[k] = from[k];
    });
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    if (is_convolution(pattern.shape())) {
      std::ranges::copy(elements, stored.begin());
      return;
    }
    for_each_stretch(pattern, [&](int64_t value, int64_t element, int64_t length) {
      const float* from = elements.data() + element;
      float* into = stored.data() + value;
      for (int64_t k = 0; k < length; ++k) into[k] = from[k];
    });
  }

 private:
  // Nonzeros that follow each other in both orders: `visit(first value, first element, length)`.
  template <class Visit>
  static void for_each_stretch(const Pattern& pattern, Visit&& visit) {
    const CsrStream& stream = index_of(pattern).forward;
    std::vector<int64_t> next = csr_row_begins(stream);
    csr_for_each_stretch(stream, [&](int64_t row, int64_t value, int64_t, int64_t length) {
      visit(value, next[static_cast<size_t>(row)], length);
      next[static_cast<size_t>(row)] += length;
    });
  }
};

}  // namespace

const Layout& csr_layout() {
  static const CsrLayout layout;
  return layout;
}

}  // namespace lacuna
