// The N:M layouts: values, gradient and states by slot (kernels/nm/nm.hpp).
//
// The input gradient of 2:4 is computed by groups of four columns if the processor has a kernel for
// it (kernels/nm/nm_columns.hpp). Otherwise it is the forward product of the transposed matrix with
// its own copy of the values: for a transposable pattern an N:M matrix too, for another one a
// stream of nonzeros, as in the csr layout.
#include "lacuna/framework/layouts/formats/nm_layout.hpp"
#include "lacuna/framework/layouts/batch_sums.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lacuna/framework/kernels/nm/nm.hpp"
#include "lacuna/framework/kernels/nm/nm_columns.hpp"
#include "lacuna/framework/kernels/nm/nm_gradient.hpp"
#include "lacuna/framework/kernels/nm/nm_pairs.hpp"
#include "lacuna/framework/kernels/nm/nm_transpose.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/formats/block_index.hpp"
#include "lacuna/framework/layouts/formats/csr_products.hpp"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

// The first element of each row; the slot and column of each element in row-major order.
struct Elements {
  explicit Elements(const NmMatrix& matrix, int64_t nnz)
      : row_begin(static_cast<size_t>(matrix.form.rows) + 1),
        column(static_cast<size_t>(nnz)),
        slot(static_cast<size_t>(nnz)) {
    nm_for_each(matrix,
                [&](int64_t, int64_t row, int64_t) { ++row_begin[static_cast<size_t>(row) + 1]; });
    for (size_t r = 1; r < row_begin.size(); ++r) row_begin[r] += row_begin[r - 1];
    std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
    nm_for_each(matrix, [&](int64_t s, int64_t row, int64_t c) {
      const auto place = static_cast<size_t>(next[static_cast<size_t>(row)]++);
      column[place] = static_cast<uint32_t>(c);
      slot[place] = static_cast<uint32_t>(s);
    });
  }
  std::vector<int64_t> row_begin;
  Array<uint32_t> column, slot;
};

class NmIndex final : public PatternIndex {
 public:
  NmIndex(const Shape& shape, const PatternShape& pattern, const Positions& positions)
      : shape_(shape),
        pattern_(pattern),
        nnz_(positions.count()),
        forward(nm_matrix(
            {.rows = positions.rows(), .columns = positions.columns(), .pattern = pattern},
            positions.row_begin(), positions.column())) {}
  NmIndex(const Shape& shape, const PatternShape& pattern, NmMatrix matrix, BitMask mask)
      : shape_(shape),
        pattern_(pattern),
        nnz_(matrix.form.stored()),
        mask_(std::move(mask)),
        forward(std::move(matrix)) {}

  int64_t bytes() const override {
    const auto mask_bytes = static_cast<int64_t>(mask_.words().size() * sizeof(uint64_t));
    return forward.bytes() + nm_.bytes() + csr_.bytes() + columns_.bytes() + pairs_.bytes() +
           mask_bytes;
  }
  const BitMask* mask() const override { return mask_.size() == 0 ? nullptr : &mask_; }

  Elements elements() const { return Elements(forward, nnz_); }

  Positions positions() const {
    Elements found = elements();
    return Positions(shape_, std::move(found.row_begin), std::move(found.column));
  }

  // Built when first needed: the pattern of a model's first layer never needs it.
  const NmTranspose& transposed_nm() const {
    std::call_once(nm_once_, [&] { nm_ = nm_transpose(forward); });
    return nm_;
  }
  const CsrTransposed& transposed_csr() const {
    std::call_once(csr_once_, [&] {
      Elements of = elements();
      csr_ = ::lacuna::transposed_csr(forward.form.columns, of.row_begin, std::move(of.column),
                                      std::move(of.slot));
    });
    return csr_;
  }
  /// *Requires* nm_has_columns(forward).
  const NmColumns& columns() const {
    std::call_once(columns_once_, [&] { columns_ = nm_columns(forward); });
    return columns_;
  }
  /// *Requires* nm_has_pairs(forward).
  const NmPairs& pairs() const {
    std::call_once(pairs_once_, [&] { pairs_ = nm_pairs(forward); });
    return pairs_;
  }

 private:
  const Shape shape_;
  const PatternShape pattern_;
  const int64_t nnz_;
  const BitMask mask_;  // if the pattern was made from one
  mutable std::once_flag nm_once_, csr_once_, columns_once_, pairs_once_;
  mutable NmTranspose nm_;     // if the format is transposable
  mutable CsrTransposed csr_;  // if it is not
  mutable NmColumns columns_;  // if the input gradient uses them
  mutable NmPairs pairs_;      // if the forward product uses them

 public:
  const NmMatrix forward;
};

const NmIndex& nm_index_of(const Pattern& pattern) { return pattern.index_as<NmIndex>(); }

// Runs of elements that are also consecutive among the slots: `visit(first slot, first element,
// length)`. Returns false, without visits, if some slots are unused.
template <class Visit>
bool for_each_run(const NmMatrix& matrix, Visit&& visit) {
  if (!matrix.unused.empty()) return false;
  const NmMatrixForm& form = matrix.form;
  const int64_t in_row = form.stored() / std::max<int64_t>(form.rows, 1);
  int64_t before = 0;  // elements of a row in the tiles before
  for (int64_t t = 0; t < form.tiles(); ++t) {
    const NmTile tile = form.tile(t);
    for (int64_t row = 0; row < form.rows; ++row) {
      visit(tile.first_slot + row * tile.slots, row * in_row + before, tile.slots);
    }
    before += tile.slots;
  }
  return true;
}

Tensor forward_product(const NmMatrix& matrix, std::span<const float> values, const Tensor& x,
                       const Tensor& bias, Order order) {
  const float* added = bias.defined() ? bias.data() : nullptr;
  Tensor y = Tensor::empty(x.shape().with_features(matrix.form.rows), order);
  const Tensor input = reordered(x, order);
  (order == Order::RowMajor ? nm_product_row_major : nm_product)(
      matrix, values.data(), input.data(order), x.shape().batch(), added, y.mutable_data(order));
  return y;
}

class NmLayout final : public Layout {
 public:
  explicit NmLayout(const PatternShape& pattern) : pattern_(pattern), name_(pattern.to_string()) {}

  std::string_view name() const override { return name_; }
  PatternShape pattern_shape() const override { return pattern_; }

  std::shared_ptr<const PatternIndex> make_index(const Shape& shape,
                                                 const Positions& positions) const override {
    require_form(shape, form_of(shape));
    require_groups(shape, positions);
    if (pattern_.is_transposable()) require_columns(shape, positions);
    return std::make_shared<const NmIndex>(shape, pattern_, positions);
  }

  std::shared_ptr<const PatternIndex> make_index_of_mask(const Shape& shape,
                                                         const BitMask& mask) const override {
    const NmMatrixForm form = form_of(shape);
    require_form(shape, form);
    std::optional<NmMatrix> matrix = nm_matrix_of_full(form, mask);
    if (!matrix || (pattern_.is_transposable() && !nm_columns_fit(form, mask))) {
      return make_index(shape, Positions::of(shape, mask));
    }
    return std::make_shared<const NmIndex>(shape, pattern_, *std::move(matrix), mask);
  }

  Positions positions(const Pattern& pattern) const override {
    return nm_index_of(pattern).positions();
  }

  int64_t stored_size(const Pattern& pattern) const override {
    return nm_index_of(pattern).forward.form.stored();
  }

  Order order(int64_t batch, int64_t /*features*/) const override {
    return batch <= 1 ? Order::RowMajor : Order::BatchSlabs;
  }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    if (x.shape().batch() > kFewExamples && goes_by_pairs(weight)) return by_pairs(weight, x, bias);
    const Tensor y = forward_product(nm_index_of(weight.pattern).forward, weight.values, x, bias,
                                     order(x.shape().batch(), 0));
    // All activations after it, and back to this layer's gradients, are then row-major.
    return uses_dense_gradient(weight) ? reordered(y, Order::RowMajor) : y;
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    const NmIndex& index = nm_index_of(weight.pattern);
    if (uses_dense_gradient(weight)) return by_dense(weight, dy);
    if (dy.shape().batch() > 1 && goes_by_columns(weight)) return by_columns(weight, dy);
    if (!pattern_.is_transposable()) return csr_input_gradient(weight, index.transposed_csr(), dy);
    const NmTranspose& transposed = index.transposed_nm();
    DerivedValues own;
    const auto values = refreshed(weight, index.forward.form.stored(), own, [&](float* into) {
      nm_transpose_values(index.forward, transposed, weight.values.data(), into);
    });
    return forward_product(transposed.matrix, values, dy, Tensor(), order(dy.shape().batch(), 0));
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    const NmMatrix& matrix = nm_index_of(pattern).forward;
    const int64_t batch = x.shape().batch();
    const Order by = order(batch, 0);
    const bool is_row_major = by == Order::RowMajor;
    const Tensor dy_in = is_row_major ? reordered(dy, by) : in_slabs(dy);
    const Tensor x_in = is_row_major ? reordered(x, by) : in_slabs(x);
    if (is_row_major) {
      return nm_gradient_row_major(matrix, dy_in.data(by), x_in.data(by), batch, accumulate,
                                   gradient.data());
    }
    nm_gradient(matrix, dy_in.data(by), x_in.data(by), batch, accumulate, gradient.data(),
                BatchSums::claim(dy));
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    const NmMatrix& matrix = nm_index_of(pattern).forward;
    if (for_each_run(matrix, [&](int64_t slot, int64_t element, int64_t length) {
          std::copy_n(stored.data() + slot, length, elements.data() + element);
        })) {
      return;
    }
    const Elements of = nm_index_of(pattern).elements();
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = stored[of.slot[i]];
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    const NmMatrix& matrix = nm_index_of(pattern).forward;
    if (for_each_run(matrix, [&](int64_t slot, int64_t element, int64_t length) {
          std::copy_n(elements.data() + element, length, stored.data() + slot);
        })) {
      return;
    }
    const Elements of = nm_index_of(pattern).elements();
    prune(pattern, stored);
    for (size_t i = 0; i < elements.size(); ++i) stored[of.slot[i]] = elements[i];
  }

  Tensor to_dense(const Pattern& pattern, std::span<const float> values) const override {
    Tensor dense = Tensor::empty(pattern.shape());
    nm_to_dense(nm_index_of(pattern).forward, values.data(), dense.mutable_data());
    return dense;
  }

  void from_dense(const Pattern& pattern, std::span<const float> dense,
                  std::span<float> values) const override {
    nm_from_dense(nm_index_of(pattern).forward, dense.data(), values.data());
  }

  void prune(const Pattern& pattern, std::span<float> values) const override {
    for (const uint32_t slot : nm_index_of(pattern).forward.unused) values[slot] = 0.0f;
  }

 private:
  bool uses_dense_gradient(const WeightView& weight) const {
    return weight.pattern.lifetime() == PatternLifetime::OneStep && !pattern_.is_transposable();
  }

  // The index takes longer to build than a transposable matrix's transpose, but then saves time at
  // every step, except for a small matrix.
  static bool goes_by_columns(const WeightView& weight) {
    return is_worth_an_index(weight) && nm_has_columns(nm_index_of(weight.pattern).forward);
  }
  static bool goes_by_pairs(const WeightView& weight) {
    return is_worth_an_index(weight) && nm_has_pairs(nm_index_of(weight.pattern).forward);
  }
  static bool is_worth_an_index(const WeightView& weight) {
    constexpr int64_t kSmall = 1 << 12;
    return weight.pattern.lifetime() != PatternLifetime::OneStep &&
           nm_index_of(weight.pattern).forward.form.stored() >= kSmall;
  }

  // With so few, four rows at once hide the latency of a multiply-add better than two.
  static constexpr int64_t kFewExamples = 16;
  static Tensor by_pairs(const WeightView& weight, const Tensor& x, const Tensor& bias) {
    const NmIndex& index = nm_index_of(weight.pattern);
    const Tensor slabs = reordered(x, Order::BatchSlabs);
    Tensor y = Tensor::empty(x.shape().with_features(index.forward.form.rows), Order::BatchSlabs);
    nm_product_by_pairs(index.forward, index.pairs(), weight.values.data(),
                        slabs.data(Order::BatchSlabs), x.shape().batch(),
                        bias.defined() ? bias.data() : nullptr, y.mutable_data(Order::BatchSlabs));
    return y;
  }

  static Tensor by_columns(const WeightView& weight, const Tensor& dy) {
    const NmIndex& index = nm_index_of(weight.pattern);
    const NmMatrixForm& form = index.forward.form;
    const NmColumns& columns = index.columns();
    DerivedValues own;
    constexpr int kByColumns = 1;  // the other form is that of a transposed matrix
    const auto values = refreshed(
        weight, form.stored(), own,
        [&](float* into) { nm_values_by_columns(form, columns, weight.values.data(), into); },
        kByColumns);
    const Tensor slabs = reordered(dy, Order::BatchSlabs);
    Tensor dx = Tensor::empty(dy.shape().with_features(form.columns), Order::BatchSlabs);
    nm_input_gradient(form, columns, values.data(), slabs.data(Order::BatchSlabs),
                      dy.shape().batch(), dx.mutable_data(Order::BatchSlabs));
    return dx;
  }

  // A transposed index takes longer to build than it saves in one product.
  static Tensor by_dense(const WeightView& weight, const Tensor& dy) {
    const Shape& shape = weight.pattern.shape();
    DerivedValues own;
    const auto values = refreshed(weight, shape.numel(), own, [&](float* into) {
      nm_to_dense(nm_index_of(weight.pattern).forward, weight.values.data(), into);
    });
    return dense_layout().input_gradient({.pattern = *Pattern::dense(shape), .values = values}, dy);
  }

  NmMatrixForm form_of(const Shape& shape) const {
    return {.rows = matrix_rows(shape), .columns = matrix_columns(shape), .pattern = pattern_};
  }

  void require_form(const Shape& shape, const NmMatrixForm& form) const {
    constexpr int64_t kMost = int64_t{1} << 31;
    require_tile_sides(pattern_, shape);
    if (form.rows >= kMost || form.stored() >= kMost) {
      refuse_shape(pattern_, shape,
                   fmt::format("it would need {} slots; the limit is 2^31 - 1", form.stored()));
    }
  }

  void require_groups(const Shape& shape, const Positions& positions) const {
    const int64_t m = pattern_.m();
    for (int64_t r = 0; r < positions.rows(); ++r) {
      const std::span<const uint32_t> row = positions.row(r);
      auto next = row.begin();
      for (int64_t first = 0; first < positions.columns(); first += m) {
        const auto begin = next;
        while (next != row.end() && *next < first + m) ++next;
        if (next - begin <= pattern_.n()) continue;
        refuse_shape(
            pattern_, shape,
            fmt::format(
                "row {} has {} nonzeros in group {} (columns {} to {}); at most {} are allowed", r,
                next - begin, first / m, first, first + m - 1, pattern_.n()));
      }
    }
  }

  // Requires at most two nonzeros in each column of four rows.
  void require_columns(const Shape& shape, const Positions& positions) const {
    std::vector<uint8_t> count(static_cast<size_t>(positions.columns()));
    for (int64_t r = 0; r < positions.rows(); ++r) {
      if (r % 4 == 0) std::fill(count.begin(), count.end(), uint8_t{0});
      for (const uint32_t c : positions.row(r)) {
        if (++count[c] <= 2) continue;
        refuse_shape(pattern_, shape,
                     fmt::format("column {} has more than 2 nonzeros in rows {} to {}", c,
                                 r / 4 * 4, r / 4 * 4 + 3));
      }
    }
  }

  PatternShape pattern_;
  std::string name_;
};

}  // namespace

std::unique_ptr<const Layout> make_nm_layout(const PatternShape& pattern) {
  return std::make_unique<const NmLayout>(pattern);
}

}  // namespace lacuna
