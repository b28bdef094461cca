// Grouped layouts: values, gradient and states in the order of a stream of cells, nnz long.
//
// Formats whose groups or blocks have no multiple of four rows keep csr's index and leave all to
// the csr layout; what is theirs is the name and the check of the positions.
#include "lacuna/framework/layouts/grouped.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"
#include "lacuna/framework/layouts/grouped_index.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/layouts/tile_sample.h"

namespace lacuna {
namespace {

// Up to so many examples run row-major, one by one, where slabs would be padding for the most part
// (AMD Zen 4: with two 1.6 to 4 times faster, with four as fast at 50 % and 1.2 times at 90 %). So
// do a few more where slabs of them would take much memory. Weight gradients gain longer, their
// conversion included: with eight examples they take half of a slab's time.
constexpr int64_t kVeryFewExamples = 4, kFewExamples = 8, kManyFeatures = 1 << 20;
constexpr int64_t kFewForGradient = 12;

constexpr int64_t kMost = int64_t{1} << 31;  // nonzeros and rows

const GroupedIndex& index_of(const Pattern& pattern) {
  return *static_cast<const GroupedIndex*>(pattern.index());
}

// In slabs, with zeros in the padding.
Tensor in_slabs(const Tensor& tensor) {
  Tensor slabs = reordered(tensor, Order::BatchSlabs);
  slabs.clear_padding();
  return slabs;
}

class GroupedLayout final : public Layout {
 public:
  GroupedLayout(std::string name, const Tiling& tiling)
      : name_(std::move(name)), tiling_(tiling), cells_(choose_cells(tiling)) {}

  std::string_view name() const override { return name_; }

  std::shared_ptr<const PatternIndex> index(const Shape& shape,
                                            const Positions& positions) const override {
    check(shape, positions);
    if (!cells_) return csr_layout().index(shape, positions);
    return std::make_shared<const GroupedIndex>(shape, *cells_, positions);
  }

  std::shared_ptr<const PatternIndex> index_of_mask(const Shape& shape,
                                                    const BitMask& mask) const override {
    constexpr int64_t kWord = 64;
    const int64_t rows = matrix_rows(shape), columns = matrix_columns(shape);
    if (!cells_ || cells_->is_transposed || columns % kWord != 0 || mask.size() >= kMost) {
      return index(shape, Positions::of(shape, mask));
    }
    check_sides(shape, rows, columns);
    std::vector<int64_t> begin{0};
    std::vector<uint32_t> cells, in_row;
    for (int64_t first = 0; first < rows; first += tiling_.rows) {
      const auto words_of = [&](int64_t row) {
        return mask.words().subspan(static_cast<size_t>(row * columns / kWord),
                                    static_cast<size_t>(columns / kWord));
      };
      for (int64_t row = first + 1; row < first + tiling_.rows; ++row) {
        if (!std::ranges::equal(words_of(row), words_of(first))) refuse_row(shape, row, first);
      }
      in_row.clear();
      int64_t column = 0;
      for (uint64_t word : words_of(first)) {
        for (; word != 0; word &= word - 1) {
          in_row.push_back(static_cast<uint32_t>(column + std::countr_zero(word)));
        }
        column += kWord;
      }
      check_row(shape, first, in_row);
      const CellShape& cell = cells_->cell;
      for (int64_t row = 0; row < tiling_.rows; row += cell.rows) {
        for (size_t i = 0; i < in_row.size(); i += static_cast<size_t>(cell.columns)) {
          cells.push_back(in_row[i] / static_cast<uint32_t>(cell.columns));
        }
        begin.push_back(static_cast<int64_t>(cells.size()));
      }
    }
    const CellShape& cell = cells_->cell;
    return std::make_shared<const GroupedIndex>(
        shape, grouped_stream(cell, rows / cell.rows, columns / cell.columns, begin, cells), mask);
  }

  Positions positions(const Pattern& pattern) const override {
    return cells_ ? index_of(pattern).positions() : csr_layout().positions(pattern);
  }

  int64_t stored_size(const Pattern& pattern) const override { return pattern.nnz(); }

  Shape granularity() const override { return {tiling_.rows, tiling_.columns * tiling_.m}; }

  Positions sample(const Shape& shape, double density) const override {
    return sample_tiles(
        shape, {.rows = tiling_.rows, .columns = tiling_.columns, .n = tiling_.n, .m = tiling_.m},
        density);
  }

  Order order(int64_t batch, int64_t features) const override {
    if (!cells_) return csr_layout().order(batch, features);
    return batch <= kVeryFewExamples || (batch <= kFewExamples && features >= kManyFeatures)
               ? Order::RowMajor
               : Order::BatchSlabs;
  }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    if (!cells_) return csr_layout().forward(weight, x, bias);
    const float* added = bias.defined() ? bias.data() : nullptr;
    return cells_->is_transposed ? by_columns(weight, x, added) : by_rows(weight, x, added);
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    if (!cells_) return csr_layout().input_gradient(weight, dy);
    return cells_->is_transposed ? by_rows(weight, dy, nullptr) : by_columns(weight, dy, nullptr);
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    if (!cells_) return csr_layout().weight_gradient(pattern, dy, x, accumulate, gradient);
    const GroupedStream& stream = index_of(pattern).stream;
    const bool is_rows = x.shape().batch() <= kFewForGradient;
    const Order order = is_rows ? Order::RowMajor : Order::BatchSlabs;
    const Tensor out = is_rows ? reordered(dy, order) : in_slabs(dy);
    const Tensor in = is_rows ? reordered(x, order) : in_slabs(x);
    const float *by_row = out.data(order), *by_column = in.data(order);
    if (cells_->is_transposed) std::swap(by_row, by_column);
    (is_rows ? grouped_gradient_rows : grouped_gradient)(
        stream, by_row, by_column, x.shape().batch(), accumulate == Accumulate::Yes,
        gradient.data());
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    if (!cells_) return csr_layout().compact(pattern, stored, elements);
    const std::vector<uint32_t> element = index_of(pattern).elements();
    for (size_t i = 0; i < element.size(); ++i) elements[element[i]] = stored[i];
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    if (!cells_) return csr_layout().expand(pattern, elements, stored);
    const std::vector<uint32_t> element = index_of(pattern).elements();
    for (size_t i = 0; i < element.size(); ++i) stored[i] = elements[element[i]];
  }

  void from_dense(const Pattern& pattern, std::span<const float> dense,
                  std::span<float> values) const override {
    if (!cells_ || cells_->is_transposed) return Layout::from_dense(pattern, dense, values);
    index_of(pattern).take(dense, values);
  }

 private:
  // The order in which products on `tensor` run.
  Order order_of(const GroupedStream& stream, const Tensor& tensor) const {
    return order(tensor.shape().batch(), std::max(stream.rows(), stream.columns()));
  }

  // The stream's matrix times the tensor's examples: [..., columns] → [..., rows].
  Tensor by_rows(const WeightView& weight, const Tensor& tensor, const float* bias) const {
    const GroupedStream& stream = index_of(weight.pattern).stream;
    const Order order = order_of(stream, tensor);
    const Tensor in = reordered(tensor, order);
    Tensor out = Tensor::empty(tensor.shape().with_features(stream.rows()), order);
    (order == Order::RowMajor ? grouped_product_rows : grouped_product)(
        stream, weight.values.data(), in.data(order), tensor.shape().batch(), bias,
        out.mutable_data(order));
    return out;
  }

  // The stream's matrix, transposed, times the tensor's examples: [..., rows] → [..., columns].
  Tensor by_columns(const WeightView& weight, const Tensor& tensor, const float* bias) const {
    const GroupedIndex& index = index_of(weight.pattern);
    const GroupedStream& stream = index.stream;
    const Order order = order_of(stream, tensor);
    const int64_t batch = tensor.shape().batch();
    const Tensor input = reordered(tensor, order);
    Tensor output = Tensor::empty(tensor.shape().with_features(stream.columns()), order);
    const float *values = weight.values.data(), *in = input.data(order);
    float* out = output.mutable_data(order);
    if (order == Order::RowMajor) {
      grouped_input_gradient_rows(stream, values, in, batch, bias, out);
    } else if (stream.cell.columns > 1) {
      grouped_input_gradient(stream, index.by_columns(), values, in, batch, out);
    } else {
      grouped_input_gradient(stream, values, in, batch, bias, out);
    }
    return output;
  }

  [[noreturn]] void refuse(const Shape& shape, const std::string& why) const {
    throw ShapeError("layout " + name_ + " cannot store shape " + shape.to_string() + ": " + why);
  }

  void check_sides(const Shape& shape, int64_t rows, int64_t columns) const {
    const auto check_side = [&](int64_t size, int64_t unit, const char* what) {
      if (size % unit != 0) {
        refuse(shape,
               std::to_string(size) + " " + what + " are not divisible by " + std::to_string(unit));
      }
    };
    check_side(rows, tiling_.rows, "rows");
    check_side(columns, tiling_.columns * tiling_.m, "columns");
  }

  [[noreturn]] void refuse_row(const Shape& shape, int64_t row, int64_t first) const {
    refuse(shape, "row " + std::to_string(row) + " has other positions than row " +
                      std::to_string(first) + ", with which it shares its tiles");
  }

  void check(const Shape& shape, const Positions& positions) const {
    check_sides(shape, positions.rows(), positions.columns());
    if (positions.count() >= kMost || positions.rows() >= kMost) {
      refuse(shape, "it has " + std::to_string(positions.count()) +
                        " nonzeros, of which fewer than 2^31 can be held, and of rows");
    }
    for (int64_t row = 0; row < positions.rows(); ++row) {
      const int64_t first = row - row % tiling_.rows;
      if (row == first) {
        check_row(shape, row, positions.row(row));
      } else if (!std::ranges::equal(positions.row(row), positions.row(first))) {
        refuse_row(shape, row, first);
      }
    }
  }

  void check_row(const Shape& shape, int64_t row, std::span<const uint32_t> columns) const {
    const auto width = static_cast<size_t>(tiling_.columns);
    for (size_t i = 0; i < columns.size(); i += width) {
      const bool is_whole = columns[i] % width == 0 && i + width <= columns.size() &&
                            columns[i + width - 1] == columns[i] + width - 1;
      if (!is_whole) {
        refuse(shape, "row " + std::to_string(row) + " has only a part of the tile at column " +
                          std::to_string(columns[i] / width * width));
      }
    }
    const auto n = static_cast<size_t>(tiling_.n), m = static_cast<size_t>(tiling_.m);
    if (n == m) return;
    for (size_t i = 0; i + n < columns.size(); ++i) {
      if (columns[i] / m == columns[i + n] / m) {
        refuse(shape, "row " + std::to_string(row) + " has more than " + std::to_string(n) +
                          " positions in the " + std::to_string(m) + " columns from " +
                          std::to_string(columns[i] / m * m) + " on");
      }
    }
  }

  const std::string name_;
  const Tiling tiling_;
  const std::optional<CellForm> cells_;  // none: csr
};

// One object for each name, made when first asked for.
const Layout& layout_named(const std::string& name, const Tiling& tiling) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const GroupedLayout>> layouts;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const GroupedLayout>& layout = layouts[name];
  if (layout == nullptr) layout = std::make_unique<const GroupedLayout>(name, tiling);
  return *layout;
}

std::string name_of(const GroupedNmFormat& f) {
  return "nm " + std::to_string(f.n) + ":" + std::to_string(f.m) + " g" + std::to_string(f.group);
}
std::string name_of(const BlockFormat& f) {
  return "block " + std::to_string(f.rows) + "x" + std::to_string(f.columns);
}

bool is_valid(const GroupedNmFormat& f) { return f.n >= 1 && f.n <= f.m && f.group >= 1; }
bool is_valid(const BlockFormat& f) { return f.rows >= 1 && f.columns >= 1; }

// Takes `text` off the front.
bool skip(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

bool read(std::string_view& rest, int& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return true;
}

}  // namespace

const Layout& grouped_nm_layout(const GroupedNmFormat& format) {
  if (!is_valid(format)) {
    throw ConfigError("layout '" + name_of(format) + "': 1 <= n <= m and a group of at least one " +
                      "row are expected");
  }
  return layout_named(name_of(format), {.rows = format.group, .n = format.n, .m = format.m});
}

const Layout& block_layout(const BlockFormat& format) {
  if (!is_valid(format)) {
    throw ConfigError("layout '" + name_of(format) +
                      "': blocks of at least one row and column are expected");
  }
  return layout_named(name_of(format), {.rows = format.rows, .columns = format.columns});
}

const Layout* find_grouped_layout(std::string_view name) {
  std::string_view rest = name;
  GroupedNmFormat nm;
  if (skip(rest, "nm ") && read(rest, nm.n) && skip(rest, ":") && read(rest, nm.m) &&
      skip(rest, " g") && read(rest, nm.group) && is_valid(nm) && name == name_of(nm)) {
    return &grouped_nm_layout(nm);
  }
  rest = name;
  BlockFormat block;
  if (skip(rest, "block ") && read(rest, block.rows) && skip(rest, "x") &&
      read(rest, block.columns) && is_valid(block) && name == name_of(block)) {
    return &block_layout(block);
  }
  return nullptr;
}

}  // namespace lacuna
