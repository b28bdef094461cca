// The N:M layouts: values, gradient and states by slot (kernels/nm/nm.h).
//
// The input gradient is the forward product of the transposed matrix with its own copy of the
// values. Of a transposable pattern that is an N:M matrix too; of another it is a stream of
// nonzeros, as in the csr layout.
#include "lacuna/framework/layouts/nm.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/nm/nm.h"
#include "lacuna/framework/kernels/nm/nm_transpose.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"
#include "lacuna/framework/layouts/csr_products.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/layouts/tile_sample.h"

namespace lacuna {
namespace {

constexpr std::string_view kPrefix = "nm ", kTransposable = " transposable";

std::string name_of(const NmFormat& format) {
  return std::string(kPrefix) + std::to_string(format.n) + ":" + std::to_string(format.m) +
         std::string(format.transposable ? kTransposable : "");
}

bool is_format(const NmFormat& f) {
  return f.n >= 1 && f.n <= f.m && f.m <= NmForm::kLargestGroup &&
         (!f.transposable || (f.n == 2 && f.m == 4));
}

// Where each row's elements begin, and of each element in row-major order its slot and column.
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
  NmIndex(const Shape& shape, const NmFormat& format, const Positions& positions)
      : shape_(shape),
        format_(format),
        nnz_(positions.count()),
        forward(nm_matrix({.rows = positions.rows(),
                           .columns = positions.columns(),
                           .n = format.n,
                           .m = format.m},
                          positions.row_begin(), positions.column())) {}
  NmIndex(const Shape& shape, const NmFormat& format, NmMatrix matrix, BitMask mask)
      : shape_(shape),
        format_(format),
        nnz_(matrix.form.stored()),
        mask_(std::move(mask)),
        forward(std::move(matrix)) {}

  int64_t bytes() const override {
    const auto mask_bytes = static_cast<int64_t>(mask_.words().size() * sizeof(uint64_t));
    return forward.bytes() + nm_.bytes() + csr_.bytes() + mask_bytes;
  }
  const BitMask* mask() const override { return mask_.size() == 0 ? nullptr : &mask_; }

  Elements elements() const { return Elements(forward, nnz_); }

  Positions positions() const {
    Elements found = elements();
    return Positions(shape_, std::move(found.row_begin), std::move(found.column));
  }

  // Built when first needed: a pattern whose layer comes first in a model never needs it.
  const NmTranspose& transposed_nm() const {
    std::call_once(once_, [&] { nm_ = nm_transpose(forward); });
    return nm_;
  }
  const CsrTransposed& transposed_csr() const {
    std::call_once(once_, [&] {
      Elements of = elements();
      csr_ = ::lacuna::transposed_csr(forward.form.columns, of.row_begin, std::move(of.column),
                                      std::move(of.slot));
    });
    return csr_;
  }

 private:
  const Shape shape_;
  const NmFormat format_;
  const int64_t nnz_;
  const BitMask mask_;  // where the pattern was made from one
  mutable std::once_flag once_;
  mutable NmTranspose nm_;     // where the format is transposable
  mutable CsrTransposed csr_;  // where it is not

 public:
  const NmMatrix forward;
};

const NmIndex& index_of(const Pattern& pattern) {
  return *static_cast<const NmIndex*>(pattern.index());
}

// Elements that follow each other among the slots, too: `visit(first slot, first element, length)`.
// False, and nothing is visited, where some slots are unused.
template <class Visit>
bool for_each_run(const NmMatrix& matrix, Visit&& visit) {
  if (!matrix.unused.empty()) return false;
  const NmForm& form = matrix.form;
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
  (order == Order::RowMajor ? nm_product_rows : nm_product)(
      matrix, values.data(), input.data(order), x.shape().batch(), added, y.mutable_data(order));
  return y;
}

class NmLayout final : public Layout {
 public:
  explicit NmLayout(const NmFormat& format) : format_(format), name_(name_of(format)) {}

  std::string_view name() const override { return name_; }

  std::shared_ptr<const PatternIndex> index(const Shape& shape,
                                            const Positions& positions) const override {
    require_form(shape, form_of(shape));
    require_groups(shape, positions);
    if (format_.transposable) require_columns(shape, positions);
    return std::make_shared<const NmIndex>(shape, format_, positions);
  }

  std::shared_ptr<const PatternIndex> index_of_mask(const Shape& shape,
                                                    const BitMask& mask) const override {
    const NmForm form = form_of(shape);
    require_form(shape, form);
    std::optional<NmMatrix> matrix = nm_matrix_of_full(form, mask);
    if (!matrix || (format_.transposable && !nm_columns_fit(form, mask))) {
      return index(shape, Positions::of(shape, mask));
    }
    return std::make_shared<const NmIndex>(shape, format_, *std::move(matrix), mask);
  }

  Positions positions(const Pattern& pattern) const override {
    return index_of(pattern).positions();
  }

  Shape granularity() const override { return {format_.transposable ? 4 : 1, format_.m}; }

  Positions sample(const Shape& shape, double density) const override {
    if (!format_.transposable) {
      return sample_tiles(shape, {.n = format_.n, .m = format_.m}, density);
    }
    std::vector<int64_t> begin{0};  // tiles whose rows are turned from one to the next
    std::vector<uint32_t> columns;
    for (int64_t r = 0; r < matrix_rows(shape); ++r) {
      for (int64_t tile = 0; tile < matrix_columns(shape); tile += 4) {
        const int64_t a = (r + r / 4 + tile / 4) % 4, b = (a + 1 + tile / 4 % 3) % 4;
        columns.push_back(static_cast<uint32_t>(tile + std::min(a, b)));
        columns.push_back(static_cast<uint32_t>(tile + std::max(a, b)));
      }
      begin.push_back(static_cast<int64_t>(columns.size()));
    }
    return Positions(shape, std::move(begin), std::move(columns));
  }

  int64_t stored_size(const Pattern& pattern) const override {
    return index_of(pattern).forward.form.stored();
  }

  Order order(int64_t batch, int64_t /*features*/) const override {
    return batch <= 1 ? Order::RowMajor : Order::BatchSlabs;
  }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    const Tensor y = forward_product(index_of(weight.pattern).forward, weight.values, x, bias,
                                     order(x.shape().batch(), 0));
    // What follows, back to this layer's gradients, is row-major then.
    return uses_dense_gradient(weight) ? reordered(y, Order::RowMajor) : y;
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    const NmIndex& index = index_of(weight.pattern);
    if (uses_dense_gradient(weight)) return by_dense(weight, dy);
    if (!format_.transposable) return csr_input_gradient(weight, index.transposed_csr(), dy);
    const NmTranspose& transposed = index.transposed_nm();
    DerivedValues own;
    const auto values = refreshed(weight, index.forward.form.stored(), own, [&](float* into) {
      nm_transpose_values(index.forward, transposed, weight.values.data(), into);
    });
    return forward_product(transposed.matrix, values, dy, Tensor(), order(dy.shape().batch(), 0));
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    const NmMatrix& matrix = index_of(pattern).forward;
    const int64_t batch = x.shape().batch();
    const bool is_row_major = order(batch, 0) == Order::RowMajor,
               add = accumulate == Accumulate::Yes;
    const Order by = order(batch, 0);
    const Tensor dy_in = is_row_major ? reordered(dy, by) : in_slabs(dy),
                 x_in = is_row_major ? reordered(x, by) : in_slabs(x);
    (is_row_major ? nm_gradient_rows : nm_gradient)(matrix, dy_in.data(by), x_in.data(by), batch,
                                                    add, gradient.data());
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    const NmMatrix& matrix = index_of(pattern).forward;
    if (for_each_run(matrix, [&](int64_t slot, int64_t element, int64_t length) {
          std::copy_n(stored.data() + slot, length, elements.data() + element);
        })) {
      return;
    }
    const Elements of = index_of(pattern).elements();
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = stored[of.slot[i]];
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    const NmMatrix& matrix = index_of(pattern).forward;
    if (for_each_run(matrix, [&](int64_t slot, int64_t element, int64_t length) {
          std::copy_n(elements.data() + element, length, stored.data() + slot);
        })) {
      return;
    }
    const Elements of = index_of(pattern).elements();
    prune(pattern, stored);
    for (size_t i = 0; i < elements.size(); ++i) stored[of.slot[i]] = elements[i];
  }

  Tensor to_dense(const Pattern& pattern, std::span<const float> values) const override {
    Tensor dense = Tensor::empty(pattern.shape());
    nm_to_dense(index_of(pattern).forward, values.data(), dense.mutable_data());
    return dense;
  }

  void from_dense(const Pattern& pattern, std::span<const float> dense,
                  std::span<float> values) const override {
    nm_from_dense(index_of(pattern).forward, dense.data(), values.data());
  }

  void prune(const Pattern& pattern, std::span<float> values) const override {
    for (const uint32_t slot : index_of(pattern).forward.unused) values[slot] = 0.0f;
  }

 private:
  bool uses_dense_gradient(const WeightView& weight) const {
    return weight.changes_every_step && !format_.transposable;
  }

  // A transposed index takes longer to build than it saves in one product.
  static Tensor by_dense(const WeightView& weight, const Tensor& dy) {
    const Shape& shape = weight.pattern.shape();
    DerivedValues own;
    const auto values = refreshed(weight, shape.numel(), own, [&](float* into) {
      nm_to_dense(index_of(weight.pattern).forward, weight.values.data(), into);
    });
    return dense_layout().input_gradient({.pattern = *Pattern::dense(shape), .values = values}, dy);
  }

  [[noreturn]] void refuse(const Shape& shape, const std::string& why) const {
    throw ShapeError("layout " + name_ + " cannot store shape " + shape.to_string() + ": " + why);
  }

  NmForm form_of(const Shape& shape) const {
    return {.rows = matrix_rows(shape),
            .columns = matrix_columns(shape),
            .n = format_.n,
            .m = format_.m};
  }

  void require_form(const Shape& shape, const NmForm& form) const {
    constexpr int64_t kMost = int64_t{1} << 31;
    const int64_t columns = form.columns, m = format_.m;
    if (columns % m != 0) {
      refuse(shape, std::to_string(columns) + " columns are not divisible by " + std::to_string(m));
    }
    if (format_.transposable && form.rows % m != 0) {
      refuse(shape, std::to_string(form.rows) + " rows are not divisible by " + std::to_string(m));
    }
    if (form.rows >= kMost || form.stored() >= kMost) {
      refuse(shape, "it would need " + std::to_string(form.stored()) +
                        " slots; there may be fewer than 2^31");
    }
  }

  void require_groups(const Shape& shape, const Positions& positions) const {
    const int64_t m = format_.m;
    for (int64_t r = 0; r < positions.rows(); ++r) {
      const std::span<const uint32_t> row = positions.row(r);
      auto next = row.begin();
      for (int64_t first = 0; first < positions.columns(); first += m) {
        const auto begin = next;
        while (next != row.end() && *next < first + m) ++next;
        if (next - begin <= format_.n) continue;
        refuse(shape, "row " + std::to_string(r) + " has " + std::to_string(next - begin) +
                          " nonzeros in group " + std::to_string(first / m) + " (columns " +
                          std::to_string(first) + " to " + std::to_string(first + m - 1) +
                          "), there may be " + std::to_string(format_.n));
      }
    }
  }

  // At most two nonzeros in each column of four rows.
  void require_columns(const Shape& shape, const Positions& positions) const {
    std::vector<uint8_t> count(static_cast<size_t>(positions.columns()));
    for (int64_t r = 0; r < positions.rows(); ++r) {
      if (r % 4 == 0) std::fill(count.begin(), count.end(), uint8_t{0});
      for (const uint32_t c : positions.row(r)) {
        if (++count[c] <= 2) continue;
        refuse(shape, "column " + std::to_string(c) + " has more than 2 nonzeros in rows " +
                          std::to_string(r / 4 * 4) + " to " + std::to_string(r / 4 * 4 + 3));
      }
    }
  }

  NmFormat format_;
  std::string name_;
};

// The number at the beginning of a text, which is cut off; 0 when there is none.
int take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

const Layout& nm_layout(const NmFormat& format) {
  if (!is_format(format)) {
    throw ConfigError("there is no layout '" + name_of(format) +
                      "': N:M needs 1 <= N <= M <= 16, and transposable ones are 2:4");
  }
  static std::mutex mutex;
  static std::map<std::tuple<int, int, bool>, NmLayout> layouts;  // nodes stay where they are
  const std::lock_guard lock(mutex);
  return layouts.try_emplace({format.n, format.m, format.transposable}, format).first->second;
}

const Layout* find_nm_layout(std::string_view name) {
  if (!name.starts_with(kPrefix)) return nullptr;
  std::string_view rest = name.substr(kPrefix.size());
  NmFormat format;
  format.n = take_number(rest);
  if (!rest.starts_with(':')) return nullptr;
  rest.remove_prefix(1);
  format.m = take_number(rest);
  format.transposable = rest == kTransposable;
  if (!is_format(format) || name != name_of(format)) return nullptr;
  return &nm_layout(format);
}

}  // namespace lacuna
