// Pairs rows that share columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lacuna {

/// Pairs rows of bits. An object can be reused.
class RowPairing {
 public:
  struct Pair {
    uint32_t first = 0, second = 0;
    int32_t shared = 0;  ///< common bits, rounded down to a multiple of kUnit
  };
  static constexpr int32_t kUnit = 4;

  /// Starts with this number of rows without bits.
  void begin(int64_t rows, int64_t columns);
  void set(int64_t row, uint32_t column) {
    bits_[static_cast<size_t>(row * words_ + column / 64)] |= uint64_t{1} << column % 64;
  }
  /// Sets eight columns from `first` on, a multiple of eight.
  void set_eight(int64_t row, int64_t first, uint64_t bits) {
    bits_[static_cast<size_t>(row * words_ + first / 64)] |= bits << first % 64;
  }
  bool has(int64_t row, uint32_t column) const {
    return (bits_[static_cast<size_t>(row * words_ + column / 64)] >> column % 64 & 1) != 0;
  }
  /// Pairs each row in turn with the row that shares most columns with it among the next 64
  /// unpaired ones. *Cost:* up to 64 comparisons of rows per row.
  void run();

  /// Sorted by `shared`, ascending.
  const std::vector<Pair>& pairs() const { return pairs_; }
  /// The row that remains if their number is odd, otherwise empty.
  const std::vector<uint32_t>& single() const { return single_; }

  /// Reorders a row's ascending columns: first the `shared` ones that row `other` also has, then
  /// the rest. `column(k)` is the k-th of `count`.
  template <class Column>
  const std::vector<uint32_t>& order(int64_t other, int32_t shared, size_t count,
                                     const Column& column) {
    order_.resize(count);
    others_.resize(count);
    // Each column is written to both lists' ends, and one advances: no branch to mispredict.
    size_t next_shared = 0, next_other = 0;
    for (size_t k = 0; k < count; ++k) {
      const size_t is_shared = static_cast<size_t>(has(other, column(k))) &
                               static_cast<size_t>(next_shared < static_cast<size_t>(shared));
      order_[next_shared] = static_cast<uint32_t>(k);
      others_[next_other] = static_cast<uint32_t>(k);
      next_shared += is_shared;
      next_other += 1 - is_shared;
    }
    for (size_t k = 0; k < next_other; ++k) order_[next_shared + k] = others_[k];
    return order_;
  }

 private:
  size_t most_alike(uint32_t row, size_t begin, int32_t& most) const;

  int64_t words_ = 0;
  std::vector<uint64_t> bits_;    // [rows][words_]
  std::vector<uint32_t> single_;  // rows without a partner yet
  std::vector<Pair> pairs_;
  std::vector<uint32_t> order_, others_;
};

}  // namespace lacuna
