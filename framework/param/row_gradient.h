// RowGradient: a gradient that is zero except in a few rows, which are the only ones stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The gradient of a table of which a batch has used a few rows.
struct RowGradient {
  std::vector<int64_t> rows = {};  ///< ascending, without duplicates
  Tensor values = {};              ///< [rows, columns]

  int64_t bytes() const {
    return values.bytes() + static_cast<int64_t>(rows.size() * sizeof(int64_t));
  }
  /// These rows of it; zeros where it has none. *Requires* that they ascend. *Cost:* O(both).
  Tensor gathered(std::span<const int64_t> wanted) const;
  /// Replaces the values of these rows, which may be new. *Shapes:* values [rows, columns]. *Cost:*
  /// O(both).
  void put(std::vector<int64_t> changed, Tensor changed_values);
  /// All rows of a table of this shape, zeros where it has none. *Cost:* O(numel).
  Tensor to_dense(const Shape& shape) const;
};

/// left += right, row by row; a row that only one of them has is taken from it.
struct JoinRowGradients {
  void operator()(RowGradient& left, RowGradient&& right) const;
};

}  // namespace lacuna
