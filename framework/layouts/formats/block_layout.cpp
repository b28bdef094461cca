// The layouts of blocks, and of N:M shared by rows: values, gradient and states in the order of a
// stream of cells, nnz long.
#include "lacuna/framework/layouts/formats/block_layout.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/bit_words.h"
#include "lacuna/framework/kernels/blocks/block_gradient.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/batch_sums.hpp"
#include "lacuna/framework/layouts/formats/block_index.hpp"
#include "lacuna/framework/layouts/formats/csr_layout.hpp"
#include "lacuna/framework/layouts/formats/csr_products.hpp"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

// Up to this number of examples run row-major, one by one, because slabs would be mostly padding
// (AMD Zen 4: two examples are 1.6 to 4 times faster, four as fast at 50 % and 1.2 times faster at
// 90 %). So do a few more if slabs of them would take much memory. Weight gradients gain up to more
// examples, including their conversion: with eight, they take half of a slab's time.
constexpr int64_t kVeryFewExamples = 4, kFewExamplesOfBlocks = 8;
constexpr int64_t kFewForGradient = 12;

const BlockIndex& block_index_of(const Pattern& pattern) { return pattern.index_as<BlockIndex>(); }

class BlockLayout final : public Layout {
 public:
  BlockLayout(const PatternShape& pattern, const CellForm& cells)
      : name_(pattern.to_string()), pattern_(pattern), cells_(cells) {}

  std::string_view name() const override { return name_; }
  PatternShape pattern_shape() const override { return pattern_; }

  std::shared_ptr<const PatternIndex> make_index(const Shape& shape,
                                                 const Positions& positions) const override {
    require_tiles(pattern_, shape, positions);
    return std::make_shared<const BlockIndex>(shape, cells_, positions);
  }

  std::shared_ptr<const PatternIndex> make_index_of_mask(const Shape& shape,
                                                         const BitMask& mask) const override {
    constexpr int64_t kWord = 64;
    const int64_t rows = matrix_rows(shape), columns = matrix_columns(shape);
    if (cells_.is_transposed || mask.size() >= kMostInTiles) {
      return make_index(shape, Positions::of(shape, mask));
    }
    require_tile_sides(pattern_, shape);
    const int64_t height = pattern_.unit_rows();
    std::vector<int64_t> begin{0};
    std::vector<uint32_t> cells, in_row;
    const auto word_at = [&](int64_t row, int64_t column) {
      const uint64_t word = bits_from(mask.words(), row * columns + column);
      const int64_t left = columns - column;
      return left < kWord ? word & ((uint64_t{1} << left) - 1) : word;
    };
    for (int64_t first = 0; first < rows; first += height) {
      in_row.clear();
      for (int64_t column = 0; column < columns; column += kWord) {
        uint64_t word = word_at(first, column);
        for (int64_t row = first + 1; row < first + height; ++row) {
          if (word_at(row, column) != word) refuse_tile_row(pattern_, shape, row, first);
        }
        for (; word != 0; word &= word - 1) {
          in_row.push_back(static_cast<uint32_t>(column + std::countr_zero(word)));
        }
      }
      require_row_of_tiles(pattern_, shape, first, in_row);
      const PatternShape& cell = cells_.cell;
      for (int64_t row = 0; row < height; row += cell.unit_rows()) {
        for (size_t i = 0; i < in_row.size(); i += static_cast<size_t>(cell.unit_columns())) {
          cells.push_back(in_row[i] / static_cast<uint32_t>(cell.unit_columns()));
        }
        begin.push_back(static_cast<int64_t>(cells.size()));
      }
    }
    const PatternShape& cell = cells_.cell;
    return std::make_shared<const BlockIndex>(
        shape,
        block_stream(cell, rows / cell.unit_rows(), columns / cell.unit_columns(), begin, cells),
        mask);
  }

  Positions positions(const Pattern& pattern) const override {
    return block_index_of(pattern).positions();
  }

  int64_t stored_size(const Pattern& pattern) const override { return pattern.nnz(); }

  Order order(int64_t batch, int64_t features) const override {
    return batch <= kVeryFewExamples || (batch <= kFewExamplesOfBlocks && features >= kManyFeatures)
               ? Order::RowMajor
               : Order::BatchSlabs;
  }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    const float* added = bias.defined() ? bias.data() : nullptr;
    return cells_.is_transposed ? by_columns(weight, x, added) : by_rows(weight, x, added);
  }

  Tensor input_gradient(const WeightView& weight, const Tensor& dy) const override {
    return cells_.is_transposed ? by_rows(weight, dy, nullptr) : by_columns(weight, dy, nullptr);
  }

  void weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                       Accumulate accumulate, std::span<float> gradient) const override {
    const BlockStream& stream = block_index_of(pattern).stream;
    const bool is_rows = x.shape().batch() <= kFewForGradient;
    const Order order = is_rows ? Order::RowMajor : Order::BatchSlabs;
    const Tensor out = is_rows ? reordered(dy, order) : in_slabs(dy);
    const Tensor in = is_rows ? reordered(x, order) : in_slabs(x);
    const float *by_row = out.data(order), *by_column = in.data(order);
    if (cells_.is_transposed) std::swap(by_row, by_column);
    const int64_t batch = x.shape().batch();
    if (is_rows) {
      return block_gradient_row_major(stream, by_row, by_column, batch, accumulate,
                                      gradient.data());
    }
    block_gradient(stream, by_row, by_column, batch, accumulate, gradient.data(),
                   cells_.is_transposed ? nullptr : BatchSums::claim(dy));
  }

  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    const std::vector<uint32_t> element = block_index_of(pattern).elements();
    for (size_t i = 0; i < element.size(); ++i) elements[element[i]] = stored[i];
  }

  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    const std::vector<uint32_t> element = block_index_of(pattern).elements();
    for (size_t i = 0; i < element.size(); ++i) stored[i] = elements[element[i]];
  }

  void from_dense(const Pattern& pattern, std::span<const float> dense,
                  std::span<float> values) const override {
    if (cells_.is_transposed) return Layout::from_dense(pattern, dense, values);
    block_index_of(pattern).take(dense, values);
  }

 private:
  // The order in which products on `tensor` run.
  Order order_of(const BlockStream& stream, const Tensor& tensor) const {
    return order(tensor.shape().batch(), std::max(stream.rows(), stream.columns()));
  }

  // The stream's matrix times the tensor's examples: [..., columns] → [..., rows].
  Tensor by_rows(const WeightView& weight, const Tensor& tensor, const float* bias) const {
    const BlockStream& stream = block_index_of(weight.pattern).stream;
    const Order order = order_of(stream, tensor);
    const Tensor in = reordered(tensor, order);
    Tensor out = Tensor::empty(tensor.shape().with_features(stream.rows()), order);
    (order == Order::RowMajor ? block_product_row_major : block_product)(
        stream, weight.values.data(), in.data(order), tensor.shape().batch(), bias,
        out.mutable_data(order));
    return out;
  }

  // The stream's matrix, transposed, times the tensor's examples: [..., rows] → [..., columns].
  Tensor by_columns(const WeightView& weight, const Tensor& tensor, const float* bias) const {
    const BlockIndex& index = block_index_of(weight.pattern);
    const BlockStream& stream = index.stream;
    const Order order = order_of(stream, tensor);
    const int64_t batch = tensor.shape().batch();
    const Tensor input = reordered(tensor, order);
    Tensor output = Tensor::empty(tensor.shape().with_features(stream.columns()), order);
    const float *values = weight.values.data(), *in = input.data(order);
    float* out = output.mutable_data(order);
    if (order == Order::RowMajor) {
      block_input_gradient_row_major(stream, values, in, batch, bias, out);
    } else if (stream.cell.unit_columns() > 1) {
      block_input_gradient(stream, index.by_columns(), values, in, batch, out);
    } else {
      block_input_gradient(stream, values, in, batch, bias, out);
    }
    return output;
  }

  const std::string name_;
  const PatternShape pattern_;
  const CellForm cells_;
};

}  // namespace

std::unique_ptr<const Layout> make_block_layout(const PatternShape& pattern) {
  if (const auto cells = choose_cells(pattern)) {
    return std::make_unique<const BlockLayout>(pattern, *cells);
  }
  return make_tiled_csr_layout(pattern);
}

}  // namespace lacuna
