// Matching two rows of ascending columns.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/array.h"

namespace lacuna {

/// For each column of one row, what another row has at the same column.
class RowMatch {
 public:
  /// `columns`: of the matrix.
  explicit RowMatch(int64_t columns)
      : table_(static_cast<size_t>(columns <= kLargestTable ? columns : 0), 0) {}

  /// `put(j, number)` for each wanted[j]: number_of(i) where there[i] is the same column, 0 where
  /// none is. Numbers are above 0. It may be called with 0 before it is called with the number.
  template <class Number, class Put>
  void operator()(std::span<const uint32_t> there, Number&& number_of,
                  std::span<const uint32_t> wanted, Put&& put) {
    table_.empty() ? merge(there, number_of, wanted, put) : look_up(there, number_of, wanted, put);
  }

 private:
  static constexpr int64_t kLargestTable = 1 << 14;

  // By a table over the columns, all 0 before and after: three times as fast as merging where it
  // stays in the cache.
  template <class Number, class Put>
  void look_up(std::span<const uint32_t> there, Number&& number_of,
               std::span<const uint32_t> wanted, Put&& put) {
    for (size_t i = 0; i < there.size(); ++i) table_[there[i]] = number_of(i);
    for (size_t j = 0; j < wanted.size(); ++j) put(j, table_[wanted[j]]);
    for (const uint32_t column : there) table_[column] = 0;
  }

  // The steps wait for each other's comparisons.
  template <class Number, class Put>
  static void merge(std::span<const uint32_t> there, Number&& number_of,
                    std::span<const uint32_t> wanted, Put&& put) {
    size_t i = 0, j = 0;
    while (i < there.size() && j < wanted.size()) {
      const uint32_t u = there[i], v = wanted[j];
      put(j, u == v ? number_of(i) : 0u);
      i += u <= v ? 1 : 0;
      j += v <= u ? 1 : 0;
    }
    for (; j < wanted.size(); ++j) put(j, 0u);
  }

  Array<uint32_t> table_;
};

}  // namespace lacuna
