// The csr layout: values, gradient and states in stream order, nnz long.
//
// The input gradient is the forward product of the transposed matrix, which has a stream of its own
// and a copy of the values in that order, refreshed when the values have changed.
#include <algorithm>
#include <mutex>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/csr.h"
#include "lacuna/framework/kernels/reorder.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

// A single example runs row-major, where a slab would be padding for the most part (1.35 times
// faster at 90 %, 3 times at 99 %; with two examples slabs are faster at 90 %). Slabs of a few
// examples are also left alone where they would take much memory.
constexpr int64_t kFewExamples = kMostInterleaved, kManyFeatures = 1 << 20;

// The place of each row's first element, from the rows' lengths.
std::vector<int64_t> row_begins(const CsrStream& stream) {
  std::vector<int64_t> begin(static_cast<size_t>(stream.rows) + 1);
  csr_for_each_segment(stream, [&](int64_t row, int64_t, int64_t, int64_t length) {
    begin[static_cast<size_t>(row) + 1] += length;
  });
  for (size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  return begin;
}

struct Transposed {
  CsrStream stream;
  std::vector<uint32_t> source;  // of each value, its place in the forward stream
};

class CsrIndex final : public PatternIndex {
 public:
  CsrIndex(const Shape& shape, const Positions& positions)
      : shape_(shape),
        forward(csr_stream(positions.rows(), positions.columns(), positions.row_begin(),
                           positions.column())) {}

  int64_t bytes() const override {
    return forward.bytes() + transposed_.stream.bytes() +
           static_cast<int64_t>(transposed_.source.size() * sizeof(uint32_t));
  }

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
  const Transposed& transposed() const {
    std::call_once(once_, [&] { transpose(); });
    return transposed_;
  }

 private:
  // Counting sort by column of the elements in row-major order.
  void transpose() const {
    const std::vector<int64_t> begin = row_begins(forward);
    std::vector<int64_t> column_begin(static_cast<size_t>(forward.columns) + 1);
    csr_for_each_segment(forward, [&](int64_t, int64_t value, int64_t first, int64_t length) {
      for (int64_t k = 0; k < length; ++k) {
        ++column_begin[static_cast<size_t>(first +
                                           forward.offsets[static_cast<size_t>(value + k)]) +
                       1];
      }
    });
    for (size_t c = 1; c < column_begin.size(); ++c) column_begin[c] += column_begin[c - 1];
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
    std::vector<uint32_t> row_of(value_of.size()), source(value_of.size());
    next.assign(column_begin.begin(), column_begin.end() - 1);
    for (int64_t row = 0; row < forward.rows; ++row) {
      for (int64_t i = begin[static_cast<size_t>(row)]; i < begin[static_cast<size_t>(row) + 1];
           ++i) {
        const auto element = static_cast<size_t>(i);
        const auto place = static_cast<size_t>(next[column_of[element]]++);
        row_of[place] = static_cast<uint32_t>(row);
        source[place] = value_of[element];
      }
    }
    value_of = {};
    column_of = {};
    transposed_.stream = csr_stream(forward.columns, forward.rows, column_begin, row_of);
    row_of = {};
    transposed_.source = csr_canonical_places(transposed_.stream, column_begin);
    for (uint32_t& place : transposed_.source) place = source[place];
  }

  const Shape shape_;
  mutable std::once_flag once_;
  mutable Transposed transposed_;

 public:
  const CsrStream forward;
};

const CsrIndex& index_of(const Pattern& pattern) {
  return *static_cast<const CsrIndex*>(pattern.index());
}

// In slabs, with zeros in the padding.
Tensor in_slabs(const Tensor& tensor) {
  Tensor slabs = reordered(tensor, Order::BatchSlabs);
  slabs.clear_padding();
  return slabs;
}

// A few examples side by side.
Tensor interleaved(const Tensor& tensor) {
  const Tensor rows = reordered(tensor, Order::RowMajor);
  const int64_t batch = tensor.shape().batch(), features = tensor.shape().features();
  Tensor side_by_side = Tensor::empty(Shape{features, batch});
  interleave(rows.data(), batch, features, side_by_side.mutable_data());
  return side_by_side;
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

  Order order(int64_t batch, int64_t features) const override {
    return batch <= 1 || (batch <= kFewExamples && features >= kManyFeatures) ? Order::RowMajor
                                                                              : Order::BatchSlabs;
  }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    return product(index_of(weight.pattern).forward, weight.values, x, bias);
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    const Transposed& transposed = index_of(weight.pattern).transposed();
    DerivedValues mine;
    DerivedValues& copy = weight.derived == nullptr ? mine : *weight.derived;
    if (!copy.array.defined() || copy.version != weight.version) {
      if (!copy.array.defined()) copy.array = Tensor::empty(Shape{weight.pattern.nnz()});
      gather(weight.values, transposed.source, copy.array.mutable_storage());
      copy.version = weight.version;
    }
    return product(transposed.stream, copy.array.storage(), dy, Tensor());
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    const CsrStream& stream = index_of(pattern).forward;
    const int64_t batch = x.shape().batch();
    const bool add = accumulate == Accumulate::Yes;
    if (order(batch, std::max(stream.rows, stream.columns)) == Order::RowMajor && batch > 1) {
      const Tensor dy_few = interleaved(dy), x_few = interleaved(x);
      csr_gradient_interleaved(stream, dy_few.data(), x_few.data(), batch, add, gradient.data());
    } else if (batch <= 1) {
      const Tensor dy_rows = reordered(dy, Order::RowMajor), x_rows = reordered(x, Order::RowMajor);
      csr_gradient_rows(stream, dy_rows.data(), x_rows.data(), batch, add, gradient.data());
    } else {
      const Tensor dy_slabs = in_slabs(dy), x_slabs = in_slabs(x);
      csr_gradient(stream, dy_slabs.data(Order::BatchSlabs), x_slabs.data(Order::BatchSlabs), batch,
                   add, gradient.data());
    }
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
  Tensor product(const CsrStream& stream, std::span<const float> values, const Tensor& x,
                 const Tensor& bias) const {
    const int64_t batch = x.shape().batch();
    const float* added = bias.defined() ? bias.data() : nullptr;
    const Order order = this->order(batch, std::max(stream.rows, stream.columns));
    Tensor y = Tensor::empty(x.shape().with_features(stream.rows), order);
    if (order == Order::RowMajor && batch > 1) {
      Tensor few = Tensor::empty(Shape{stream.rows, batch});
      csr_product_interleaved(stream, values.data(), interleaved(x).data(), batch, added,
                              few.mutable_data());
      separate(few.data(), batch, stream.rows, y.mutable_data());
      return y;
    }
    const Tensor input = reordered(x, order);
    (order == Order::RowMajor ? csr_product_rows : csr_product)(
        stream, values.data(), input.data(order), batch, added, y.mutable_data(order));
    return y;
  }

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
