// Prefetches the memory of the next head while the products of a head run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lacuna {

/// Arrays whose lines are prefetched into the second-level cache, evenly over some multiplications:
/// in one burst, the requests would delay the loads.
class AskedAhead {
 public:
  /// Arrays beyond the first `kArrays` are ignored.
  void add(const float* data, int64_t floats) {
    if (count_ == kArrays) return;
    arrays_[count_++] = {data, data + floats};
    lines_ += floats / kLine;
  }
  void spread_over(int64_t multiplications) {
    rate_ = static_cast<double>(lines_) / static_cast<double>(multiplications);
  }
  /// To be called after this number of multiplications.
  void pass(int64_t multiplications) {
    due_ += rate_ * static_cast<double>(multiplications);
    for (; due_ >= 1.0 && current_ < count_; due_ -= 1.0) {
      Range& range = arrays_[current_];
      __builtin_prefetch(range.begin, 0, 2);
      range.begin += kLine;
      if (range.begin >= range.end) ++current_;
    }
  }

 private:
  struct Range {
    const float* begin = nullptr;
    const float* end = nullptr;
  };
  static constexpr size_t kArrays = 40;
  static constexpr int64_t kLine = 16;

  std::array<Range, kArrays> arrays_{};
  size_t count_ = 0, current_ = 0;
  int64_t lines_ = 0;
  double rate_ = 0.0, due_ = 0.0;
};

}  // namespace lacuna
