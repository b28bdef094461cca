// The index of a layout of blocks: the cells of a pattern, and the place of each value.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/kernels/blocks/block_products.hpp"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// The form in which the kernels of cells use a weight W.
struct CellForm {
  PatternShape cell;
  bool is_transposed = false;  ///< the stream is that of Wᵀ, whose cells are cell.unit_rows() × 1
};

/// Blocks of 4 × 4 if both sides allow it; else the longest cells of one column, or of one row (the
/// transposed weight is then stored). Empty if neither side is a multiple of four.
std::optional<CellForm> choose_cells(const PatternShape& pattern);

class BlockIndex final : public PatternIndex {
 public:
  /// *Requires* positions that consist of whole cells.
  BlockIndex(const Shape& shape, const CellForm& form, const Positions& positions);
  /// From a stream of cells of the weight itself, and the same positions as bits.
  BlockIndex(const Shape& shape, BlockStream cells, BitMask mask);

  int64_t bytes() const override;
  const BitMask* mask() const override { return mask_ ? &*mask_ : nullptr; }

  /// The cells by columns; built when first requested: the pattern of a model's first layer never
  /// needs it.
  const BlockTransposed& by_columns() const;

  Positions positions() const;

  /// For each value in the stream's order, its place among the elements, ascending by flat index.
  /// *Cost:* O(nnz); 4 bytes per value.
  std::vector<uint32_t> elements() const;

  /// The cells' values from a row-major matrix. *Requires* !is_transposed. *Cost:* O(nnz).
  void take(std::span<const float> dense, std::span<float> values) const;

 private:
  struct Cell {
    int64_t row = 0, column = 0, place = 0;  // of cells, and in the stream
  };
  std::vector<Cell> cells_by_rows() const;
  std::vector<int64_t> row_begins(const std::vector<Cell>& cells) const;

  Shape shape_;
  std::optional<BitMask> mask_;
  mutable std::once_flag once_;
  mutable BlockTransposed by_columns_;

 public:
  const bool is_transposed;
  const BlockStream stream;
};

/// Layouts of tiles support fewer nonzeros, and fewer rows.
inline constexpr int64_t kMostInTiles = int64_t{1} << 31;

/// Checks that positions consist of a pattern's units: blocks, or N:M shared by rows. *Errors:*
/// ShapeError, which names the layout of the pattern, the shape and the place.
void require_tiles(const PatternShape& pattern, const Shape& shape, const Positions& positions);
/// Parts of that check, and what it throws.
void require_tile_sides(const PatternShape& pattern, const Shape& shape);
void require_row_of_tiles(const PatternShape& pattern, const Shape& shape, int64_t row,
                          std::span<const uint32_t> columns);
[[noreturn]] void refuse_tile_row(const PatternShape& pattern, const Shape& shape, int64_t row,
                                  int64_t first);
[[noreturn]] void refuse_shape(const PatternShape& pattern, const Shape& shape,
                               const std::string& why);

}  // namespace lacuna
