// ScoreGroups: how a tensor's positions are divided into separate competitions ("score shapers").
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// One competition over the whole tensor, or equal groups of rows or of columns. Dimension 0 is the
/// rows (outputs), all others together the columns (inputs). For a convolution's weight, groups of
/// columns are groups of input channels with all their taps.
struct ScoreGroups {
  enum class Along { Flat, Rows, Columns };
  Along along = Along::Flat;
  int64_t count = 1;  ///< 0: each row is a group (only with Rows)

  static ScoreGroups flat() { return {}; }
  /// `balance_out_groups`: rows split into n groups.
  static ScoreGroups rows(int64_t n) { return {Along::Rows, n}; }
  /// `balance_in_groups`: columns (input channels) split into n groups.
  static ScoreGroups columns(int64_t n) { return {Along::Columns, n}; }

  /// *Errors:* ShapeError with `parameter`, its shape and n if the dimension is not divisible.
  void require_fit(const std::string& parameter, const Shape& shape) const;
};

/// The groups of one shape: maps (group, place in the group) to flat indices, ascending in each
/// group.
class GroupIndex {
 public:
  GroupIndex(const ScoreGroups& groups, const Shape& shape);

  int64_t count() const { return count_; }
  int64_t size() const { return size_; }  ///< positions in one group
  int64_t flat(int64_t group, int64_t place) const {
    if (count_ == 1) return place;  // no divisions
    return place / width_ * stride_ + group * offset_ + place % width_;
  }
  /// The group of a position.
  int64_t of(int64_t row, int64_t column) const {
    return row / rows_of_one_ + column / columns_of_one_;
  }
  /// The number of consecutive columns of one group.
  int64_t columns_of_one() const { return columns_of_one_; }

 private:
  int64_t count_, size_;
  int64_t width_;                         // contiguous positions of a group in one row
  int64_t stride_;                        // from one such run to the next
  int64_t offset_;                        // from one group to the next
  int64_t rows_of_one_, columns_of_one_;  // of the tensor if it is not divided
};

}  // namespace lacuna
