// Matches two rows of ascending columns.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/array.h"

namespace lacuna {

/// For each column of one row, the matching element of another row.
class RowMatch {
 public:
  /// `columns`: of the whole matrix.
  explicit RowMatch(int64_t columns)
      : table_(static_cast<size_t>(columns <= kLargestTable ? columns : 0), 0) {}

  /// Calls `put(j, number)` for each wanted[j]: number_of(i) if there[i] is the same column, else
  /// 0. Numbers are above 0. A call with 0 may precede the one with the number.
  template <class Number, class Put>
  void operator()(std::span<const uint32_t> there, Number&& number_of,
                  std::span<const uint32_t> wanted, Put&& put) {
    table_.empty() ? merge(there, number_of, wanted, put) : look_up(there, number_of, wanted, put);
  }

 private:
  static constexpr int64_t kLargestTable = 1 << 14;

  // With a table over the columns, all 0 before and after: three times as fast as merging if it
  // stays in the cache.
  template <class Number, class Put>
  void look_up(std::span<const uint32_t> there, Number&& number_of,
               std::span<const uint32_t> wanted, Put&& put) {
    for (size_t i = 0; i < there.size(); ++i) table_[there[i]] = number_of(i);
    for (size_t j = 0; j < wanted.size(); ++j) put(j, table_[wanted[j]]);
    for (const uint32_t column : there) table_[column] = 0;
  }

  // A merge: its steps wait for each other's comparisons.
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
