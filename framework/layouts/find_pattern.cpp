#include "lacuna/framework/layouts/find_pattern.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr int64_t kLargestSide = 32;
constexpr double kLeastFilled = 0.95;

// A mask whose taps (for a convolution) are stacked as matrices.
class Grid {
 public:
  Grid(const Shape& shape, const BitMask& mask)
      : rows_(shape[0]),
        columns_(matrix_columns(shape) / matrix_taps(shape)),
        taps_(matrix_taps(shape)),
        bytes_(static_cast<size_t>(shape.numel()), 0) {
    mask.for_each([&](int64_t flat) {
      const int64_t row = flat / (columns_ * taps_), rest = flat % (columns_ * taps_);
      const int64_t tap = rest % taps_, column = rest / taps_;
      bytes_[static_cast<size_t>((tap * rows_ + row) * columns_ + column)] = 1;
    });
  }
  int64_t rows() const { return rows_; }  // per tap
  int64_t columns() const { return columns_; }
  int64_t all_rows() const { return rows_ * taps_; }
  const uint8_t* row(int64_t r) const { return bytes_.data() + r * columns_; }

  // Whether rows in aligned groups are equal.
  bool shares_rows(int64_t group) const {
    if (rows_ % group != 0) return false;
    for (int64_t r = 0; r < all_rows(); ++r) {
      if (r % group == 0) continue;
      if (std::memcmp(row(r), row(r - 1), static_cast<size_t>(columns_)) != 0) return false;
    }
    return true;
  }
  bool shares_columns(int64_t group) const {
    if (columns_ % group != 0) return false;
    for (int64_t r = 0; r < all_rows(); ++r) {
      const uint8_t* bits = row(r);
      for (int64_t c = 0; c < columns_; ++c) {
        if (c % group != 0 && bits[c] != bits[c - 1]) return false;
      }
    }
    return true;
  }
  // The largest number of positions in a cell of m columns.
  int fullest_cell(int m) const {
    int most = 0;
    for (int64_t r = 0; r < all_rows(); ++r) {
      for (int64_t c = 0; c < columns_; c += m) {
        int count = 0;
        for (int64_t k = c; k < c + m; ++k) count += row(r)[k];
        most = std::max(most, count);
      }
    }
    return most;
  }
  // Whether every column of every tile of 4 × 4 has at most two.
  bool is_transposable() const {
    if (rows_ % 4 != 0) return false;
    for (int64_t r = 0; r < all_rows(); r += 4) {
      for (int64_t c = 0; c < columns_; ++c) {
        if (row(r)[c] + row(r + 1)[c] + row(r + 2)[c] + row(r + 3)[c] > 2) return false;
      }
    }
    return true;
  }

 private:
  int64_t rows_, columns_, taps_;
  std::vector<uint8_t> bytes_;
};

template <class Shares>
int64_t largest_group(Shares&& shares) {
  int64_t group = 1;
  while (group < kLargestSide && shares(group * 2)) group *= 2;
  return group;
}

}  // namespace

PatternShape find_pattern(const Shape& shape, const BitMask& mask) {
  if (mask.size() != shape.numel()) {
    throw ShapeError(fmt::format("a mask of {} positions is not one of shape {}", mask.size(),
                                 shape.to_string()));
  }
  const int64_t nnz = mask.count();
  if (shape.rank() < 2 || nnz == 0 || nnz == shape.numel()) return {};
  const Grid grid(shape, mask);
  const int64_t shared = largest_group([&](int64_t g) { return grid.shares_rows(g); });
  for (int m = 2; m <= PatternShape::kLargestM; ++m) {
    if (grid.columns() % m != 0) continue;
    const int n = grid.fullest_cell(m);
    const double room = static_cast<double>(shape.numel()) * n / m;
    if (n >= m || static_cast<double>(nnz) < kLeastFilled * room) continue;
    const bool is_2_4 = n == 2 && m == 4 && shared == 1;
    return is_2_4 && grid.is_transposable() ? PatternShape::transposable_2_4()
                                            : PatternShape::nm(n, m, shared);
  }
  const int64_t wide = largest_group([&](int64_t g) { return grid.shares_columns(g); });
  return shared * wide == 1 ? PatternShape() : PatternShape::block(shared, wide);
}

}  // namespace lacuna
