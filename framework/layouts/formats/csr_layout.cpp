// The csr layout: values, gradient and states in stream order, nnz long.
//
// The input gradient is the forward product of the transposed matrix, which has its own stream and
// a copy of the values in that order, refreshed after the values have changed. A single example
// needs neither: its input gradient is scattered.
//
// Convolution weights, of rank 3 or 4, are stored by rows (csr_convolution.cpp).
#include "lacuna/framework/layouts/formats/csr_layout.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/formats/block_index.hpp"
#include "lacuna/framework/layouts/formats/csr_products.hpp"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

class CsrIndex final : public CsrStorage {
 public:
  CsrIndex(const Shape& shape, const Positions& positions)
      : shape_(shape),
        forward(csr_stream(positions.rows(), positions.columns(), positions.row_begin(),
                           positions.column())) {}

  int64_t bytes() const override { return forward.bytes() + transposed_.bytes(); }

  Positions positions() const override {
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

  void compact(std::span<const float> stored, std::span<float> elements) const override {
    for_each_value([&](size_t value, size_t element) { elements[element] = stored[value]; });
  }

  void expand(std::span<const float> elements, std::span<float> stored) const override {
    for_each_value([&](size_t value, size_t element) { stored[value] = elements[element]; });
  }

  // Built when first needed: the pattern of a model's first layer never needs it.
  const CsrTransposed& transposed() const {
    std::call_once(once_, [&] { transposed_ = csr_transposed(forward); });
    return transposed_;
  }

 private:
  // Calls `visit(place in the stream, place among the elements)` for all values.
  template <class Visit>
  void for_each_value(Visit&& visit) const {
    std::vector<int64_t> next = csr_row_begins(forward);
    csr_for_each_stretch(forward, [&](int64_t row, int64_t value, int64_t, int64_t length) {
      const auto first = static_cast<size_t>(value),
                 element = static_cast<size_t>(next[static_cast<size_t>(row)]);
      for (size_t k = 0; k < static_cast<size_t>(length); ++k) visit(first + k, element + k);
      next[static_cast<size_t>(row)] += length;
    });
  }

  const Shape shape_;
  mutable std::once_flag once_;
  mutable CsrTransposed transposed_;

 public:
  const CsrStream forward;
};

const CsrStorage& storage_of(const Pattern& pattern) { return pattern.index_as<CsrStorage>(); }
const CsrIndex& csr_index_of(const Pattern& pattern) { return pattern.index_as<CsrIndex>(); }

class CsrLayout : public Layout {
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
    if (shape.rank() > 2) return make_csr_convolution_index(positions);
    return std::make_shared<const CsrIndex>(shape, positions);
  }

  Positions positions(const Pattern& pattern) const override {
    return storage_of(pattern).positions();
  }

  int64_t stored_size(const Pattern& pattern) const override { return pattern.nnz(); }

  Order order(int64_t batch, int64_t features) const override { return csr_order(batch, features); }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    return csr_forward(csr_index_of(weight.pattern).forward, weight.values, x, bias);
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    const CsrIndex& index = csr_index_of(weight.pattern);
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
    csr_weight_gradient(csr_index_of(pattern).forward, dy, x, accumulate, gradient);
  }

  const ConvolutionProducts& convolutions(const ConvolutionShape& shape) const override {
    return shape.groups == 1 ? csr_convolutions() : Layout::convolutions(shape);
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    storage_of(pattern).compact(stored, elements);
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    storage_of(pattern).expand(elements, stored);
  }
};

class TiledCsrLayout final : public CsrLayout {
 public:
  explicit TiledCsrLayout(const PatternShape& pattern)
      : pattern_(pattern), name_(pattern.to_string()) {}

  std::string_view name() const override { return name_; }
  PatternShape pattern_shape() const override { return pattern_; }

  std::shared_ptr<const PatternIndex> make_index(const Shape& shape,
                                                 const Positions& positions) const override {
    require_tiles(pattern_, shape, positions);
    return CsrLayout::make_index(shape, positions);
  }

  const ConvolutionProducts& convolutions(const ConvolutionShape& shape) const override {
    return Layout::convolutions(shape);
  }

 private:
  const PatternShape pattern_;
  const std::string name_;
};

}  // namespace

const Layout& csr_layout() {
  static const CsrLayout layout;
  return layout;
}

std::unique_ptr<const Layout> make_tiled_csr_layout(const PatternShape& pattern) {
  return std::make_unique<const TiledCsrLayout>(pattern);
}

}  // namespace lacuna
