// GatheredRows: a few rows of an array, brought together to be changed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna {

/// Copies of rows of a row-major array [any, columns]; none of an empty array. *Lifetime:* the
/// array and the list of rows outlive it. *Cost:* O(rows · columns), on several threads.
template <class T>
class GatheredRows {
 public:
  GatheredRows(std::span<T> array, std::span<const int64_t> rows, int64_t columns)
      : array_(array), rows_(rows), columns_(columns) {
    if (array.empty()) return;
    elements_.resize(rows.size() * static_cast<size_t>(columns));
    for_each_row([&](const T* row, T* copy) { std::copy_n(row, columns_, copy); });
  }

  std::span<T> elements() { return {elements_.data(), elements_.size()}; }
  /// Writes the copies to where they are from.
  void put_back() {
    if (array_.empty()) return;
    for_each_row([&](T* row, const T* copy) { std::copy_n(copy, columns_, row); });
  }

 private:
  template <class Visit>
  void for_each_row(Visit&& visit) {
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, columns_));
    const auto count = static_cast<int64_t>(rows_.size());
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        visit(array_.data() + rows_[static_cast<size_t>(i)] * columns_,
              elements_.data() + i * columns_);
      }
    });
  }

  std::span<T> array_;
  std::span<const int64_t> rows_;
  int64_t columns_;
  Array<T> elements_;
};

}  // namespace lacuna
