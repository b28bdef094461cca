// Positions: which elements of a matrix exist, row by row: what compressed patterns are made from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// A set of positions of a shape, ascending by flat index. Dimension 0 of the shape is the rows,
/// all others together are the columns. *Memory:* 4 bytes a position and 8 a row.
class Positions {
 public:
  /// None of any matrix.
  Positions() : Positions(Shape{0, 0}) {}
  /// None.
  explicit Positions(const Shape& shape);
  /// Columns of row r: columns[row_begin[r]] … columns[row_begin[r+1] − 1], ascending.
  /// *Errors:* ShapeError when they do not fit the shape, or do not ascend.
  Positions(const Shape& shape, std::vector<int64_t> row_begin, std::vector<uint32_t> columns);
  /// *Errors:* ShapeError when the mask has another size than the shape.
  static Positions of(const Shape& shape, const BitMask& mask);
  /// From flat indices, ascending. *Errors:* as above.
  static Positions of(const Shape& shape, std::span<const int64_t> flat);
  static Positions all(const Shape& shape);

  BitMask to_mask() const;

  int64_t rows() const { return static_cast<int64_t>(row_begin_.size()) - 1; }
  int64_t columns() const { return columns_of_shape_; }
  int64_t count() const { return row_begin_.back(); }
  /// The place of a row's first position; rows() + 1 entries.
  std::span<const int64_t> row_begin() const { return row_begin_; }
  /// The column of each position.
  std::span<const uint32_t> column() const { return column_; }
  std::span<const uint32_t> row(int64_t r) const {
    return column().subspan(static_cast<size_t>(row_begin_[static_cast<size_t>(r)]),
                            static_cast<size_t>(row_begin_[static_cast<size_t>(r) + 1] -
                                                row_begin_[static_cast<size_t>(r)]));
  }
  /// Calls `visit(flat index)` for each position, ascending.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (int64_t r = 0; r < rows(); ++r) {
      for (const uint32_t c : row(r)) visit(r * columns_of_shape_ + c);
    }
  }
  friend bool operator==(const Positions&, const Positions&) = default;

 private:
  int64_t columns_of_shape_ = 0;
  std::vector<int64_t> row_begin_;
  std::vector<uint32_t> column_;
};

/// Rows and columns of a shape as Positions counts them. *Errors:* ShapeError when there are 2³²
/// columns or more.
int64_t matrix_rows(const Shape& shape);
int64_t matrix_columns(const Shape& shape);

/// For each position of `to` its place in `from`, or −1. *Cost:* O(both counts).
std::vector<int32_t> places_in(const Positions& from, const Positions& to);

}  // namespace lacuna
