// The csr layout: values, gradient and states in stream order, nnz long.
//
// The input gradient is the forward product of the transposed matrix, which has a stream of its own
// and a copy of the values in that order, refreshed when the values have changed.
#include <mutex>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/csr.h"
#include "lacuna/framework/layouts/csr_products.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

// The place of each row's first element, from the rows' lengths.
std::vector<int64_t> row_begins(const CsrStream& stream) {
  std::vector<int64_t> begin(static_cast<size_t>(stream.rows) + 1);
  csr_for_each_segment(stream, [&](int64_t row, int64_t, int64_t, int64_t length) {
    begin[static_cast<size_t>(row) + 1] += length;
  });
  for (size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  return begin;
}

class CsrIndex final : public PatternIndex {
 public:
  CsrIndex(const Shape& shape, const Positions& positions)
      : shape_(shape),
        forward(csr_stream(positions.rows(), positions.columns(), positions.row_begin(),
                           positions.column())) {}

  int64_t bytes() const override { return forward.bytes() + transposed_.bytes(); }

  Positions positions() const {
    std::vector<int64_t> begin = row_begins(forward);
    std::vector<uint32_t> columns(static_cast<size_t>(forward.nnz));
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    csr_for_each_segment(forward, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
      int64_t& place = next[static_cast<size_t>(row)];
      for (int64_t k = 0; k < length; ++k) {
        columns[static_cast<size_t>(place++)] =
            static_cast<uint32_t>(first + forward.offsets[static_cast<size_t>(value + k)]);
      }
    });
    return Positions(shape_, std::move(begin), std::move(columns));
  }

  // Built when first needed: a pattern whose layer comes first in a model never needs it.
  const TransposedCsr& transposed() const {
    std::call_once(once_, [&] { transpose(); });
    return transposed_;
  }

 private:
  void transpose() const {
    const std::vector<int64_t> begin = row_begins(forward);
    // By element in row-major order: its value's place in the stream, and its column.
    std::vector<uint32_t> value_of(static_cast<size_t>(forward.nnz)), column_of(value_of.size());
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    csr_for_each_segment(forward, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
      int64_t& place = next[static_cast<size_t>(row)];
      for (int64_t k = value; k < value + length; ++k, ++place) {
        value_of[static_cast<size_t>(place)] = static_cast<uint32_t>(k);
        column_of[static_cast<size_t>(place)] =
            static_cast<uint32_t>(first + forward.offsets[static_cast<size_t>(k)]);
      }
    });
    transposed_ = transposed_csr(forward.columns, begin, std::move(column_of), std::move(value_of));
  }

  const Shape shape_;
  mutable std::once_flag once_;
  mutable TransposedCsr transposed_;

 public:
  const CsrStream forward;
};

const CsrIndex& index_of(const Pattern& pattern) {
  return *static_cast<const CsrIndex*>(pattern.index());
}

class CsrLayout final : public Layout {
 public:
  std::string_view name() const override { return "csr"; }

  std::shared_ptr<const PatternIndex> index(const Shape& shape,
                                            const Positions& positions) const override {
    constexpr int64_t kMost = int64_t{1} << 31;
    if (positions.count() >= kMost || positions.rows() >= kMost) {
      throw ShapeError("layout csr holds fewer than 2^31 nonzeros and rows, " + shape.to_string() +
                       " has " + std::to_string(positions.count()) + " nonzeros");
    }
    return std::make_shared<const CsrIndex>(shape, positions);
  }

  Positions positions(const Pattern& pattern) const override {
    return index_of(pattern).positions();
  }

  int64_t stored_size(const Pattern& pattern) const override { return pattern.nnz(); }

  Order order(int64_t batch, int64_t features) const override { return csr_order(batch, features); }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    return csr_forward(index_of(weight.pattern).forward, weight.values, x, bias);
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    return csr_input_gradient(weight, index_of(weight.pattern).transposed(), dy);
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    csr_weight_gradient(index_of(pattern).forward, dy, x, accumulate, gradient);
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    for_each_element(pattern,
                     [&](size_t value, size_t element) { elements[element] = stored[value]; });
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    for_each_element(pattern,
                     [&](size_t value, size_t element) { stored[value] = elements[element]; });
  }

 private:
  template <class Visit>
  static void for_each_element(const Pattern& pattern, Visit&& visit) {
    const CsrStream& stream = index_of(pattern).forward;
    const std::vector<int64_t> begin = row_begins(stream);
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    csr_for_each_segment(stream, [&](int64_t row, int64_t value, int64_t, int64_t length) {
      int64_t& element = next[static_cast<size_t>(row)];
      for (int64_t k = value; k < value + length; ++k) {
        visit(static_cast<size_t>(k), static_cast<size_t>(element++));
      }
    });
  }
};

}  // namespace

const Layout& csr_layout() {
  static const CsrLayout layout;
  return layout;
}

}  // namespace lacuna
