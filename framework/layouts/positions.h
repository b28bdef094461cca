// Positions: the existing elements of a matrix, row by row, the basis of compressed patterns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// A set of positions of a shape, ascending by flat index. Dimension 0 of the shape is the rows,
/// all others together are the columns. *Memory:* 4 bytes per position and 8 per row.
class Positions {
 public:
  /// The empty set of a 0 × 0 matrix.
  Positions() : Positions(Shape{0, 0}) {}
  /// The empty set of this shape.
  explicit Positions(const Shape& shape);
  /// Columns of row r: columns[row_begin[r]] … columns[row_begin[r+1] − 1], ascending. *Errors:*
  /// ShapeError if they do not fit the shape, or do not ascend.
  Positions(const Shape& shape, std::vector<int64_t> row_begin, Array<uint32_t> columns);
  Positions(const Shape& shape, std::vector<int64_t> row_begin, std::span<const uint32_t> columns);
  /// *Errors:* ShapeError if the mask has another size than the shape.
  static Positions of(const Shape& shape, const BitMask& mask);
  /// From flat indices. *Errors:* ShapeError if an index is outside the shape, or they do not
  /// ascend.
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
  /// Calls `visit(word, bits)` with the positions as bits of a mask's 64-bit words, ascending,
  /// without empty words; a word that two rows share is visited twice.
  template <class Visit>
  void for_each_word(Visit&& visit) const;
  /// Whether a position is in the set. *Cost:* O(log of the row's count).
  bool contains(int64_t flat) const;
  /// The positions that `keep(place)` accepts; places count from 0, ascending by flat index.
  template <class Keep>
  Positions filtered(Keep&& keep) const;
  /// These positions and others, given by flat indices in any order, none twice and none already in
  /// the set. *Errors:* ShapeError if one is outside the shape. *Cost:* O(both counts + rows).
  Positions with(std::span<const int64_t> flat) const;
  friend bool operator==(const Positions&, const Positions&) = default;

 private:
  int64_t columns_of_shape_ = 0;
  std::vector<int64_t> row_begin_;
  Array<uint32_t> column_;
};

template <class Visit>
void Positions::for_each_word(Visit&& visit) const {
  for (int64_t r = 0; r < rows(); ++r) {
    const std::span<const uint32_t> columns = row(r);
    if (columns.empty()) continue;
    const int64_t first = r * columns_of_shape_;
    int64_t word = (first + columns.front()) >> 6;
    uint64_t bits = 0;
    for (const uint32_t c : columns) {
      const int64_t flat = first + c;
      if (flat >> 6 != word) {
        visit(word, bits);
        word = flat >> 6;
        bits = 0;
      }
      bits |= uint64_t{1} << (flat & 63);
    }
    visit(word, bits);
  }
}

template <class Keep>
Positions Positions::filtered(Keep&& keep) const {
  Positions kept;
  kept.columns_of_shape_ = columns_of_shape_;
  kept.row_begin_.resize(row_begin_.size());
  kept.column_.resize(column_.size() + 1);  // every column is written, but kept only on request
  size_t count = 0, place = 0;
  for (size_t r = 0; r + 1 < row_begin_.size(); ++r) {
    for (const auto end = static_cast<size_t>(row_begin_[r + 1]); place < end; ++place) {
      kept.column_[count] = column_[place];
      count += keep(place) ? 1 : 0;
    }
    kept.row_begin_[r + 1] = static_cast<int64_t>(count);
  }
  kept.column_.resize(count);
  return kept;
}

/// The number of positions that two sets have in common. *Cost:* O(both counts).
int64_t count_common(const Positions& a, const Positions& b);

/// For each position of `to`, its place in `from`, or −1. *Cost:* O(both counts).
Array<int32_t> places_in(const Positions& from, const Positions& to);

}  // namespace lacuna
