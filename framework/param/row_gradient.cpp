#include "lacuna/framework/param/row_gradient.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/kernels/pointwise/elementwise.hpp"

namespace lacuna {
namespace {

// Merges two lists of rows: calls `visit(row, place in the left list or −1, place in the right list
// or −1)` for each row, ascending.
template <class Visit>
void merge_rows(std::span<const int64_t> left, std::span<const int64_t> right, Visit&& visit) {
  size_t l = 0, r = 0;
  while (l < left.size() || r < right.size()) {
    const bool takes_left = r == right.size() || (l < left.size() && left[l] <= right[r]);
    const bool takes_right = l == left.size() || (r < right.size() && right[r] <= left[l]);
    visit(takes_left ? left[l] : right[r], takes_left ? static_cast<int64_t>(l) : -1,
          takes_right ? static_cast<int64_t>(r) : -1);
    l += takes_left ? 1 : 0;
    r += takes_right ? 1 : 0;
  }
}

int64_t count_merged(std::span<const int64_t> left, std::span<const int64_t> right) {
  int64_t count = 0;
  merge_rows(left, right, [&](int64_t, int64_t, int64_t) { ++count; });
  return count;
}

std::span<const float> row_of(const Tensor& values, int64_t row) {
  const auto columns = static_cast<size_t>(values.shape()[1]);
  return values.storage().subspan(static_cast<size_t>(row) * columns, columns);
}

// The rows of both, each by `fill(into, place in left or −1, place in right or −1)`.
template <class Fill>
RowGradient merged(const RowGradient& left, std::span<const int64_t> right, int64_t columns,
                   Fill&& fill) {
  RowGradient both;
  both.values = Tensor::empty(Shape{count_merged(left.rows, right), columns});
  both.rows.reserve(static_cast<size_t>(both.values.shape()[0]));
  float* into = both.values.mutable_data();
  merge_rows(left.rows, right, [&](int64_t row, int64_t l, int64_t r) {
    both.rows.push_back(row);
    fill(std::span<float>(into, static_cast<size_t>(columns)), l, r);
    into += columns;
  });
  return both;
}

}  // namespace

Tensor RowGradient::gathered(std::span<const int64_t> wanted) const {
  const int64_t columns = values.shape()[1];
  Tensor taken = Tensor::zeros(Shape{static_cast<int64_t>(wanted.size()), columns});
  float* const into = taken.mutable_data();
  merge_rows(rows, wanted, [&](int64_t, int64_t have, int64_t want) {
    if (have >= 0 && want >= 0) std::ranges::copy(row_of(values, have), into + want * columns);
  });
  return taken;
}

void RowGradient::put(std::vector<int64_t> changed, Tensor changed_values) {
  if (rows.empty() || changed == rows) {
    *this = {std::move(changed), std::move(changed_values)};
    return;
  }
  const int64_t columns = values.shape()[1];
  *this = merged(*this, changed, columns, [&](std::span<float> into, int64_t l, int64_t r) {
    std::ranges::copy(r >= 0 ? row_of(changed_values, r) : row_of(values, l), into.begin());
  });
}

Tensor RowGradient::to_dense(const Shape& shape) const {
  Tensor dense = Tensor::zeros(shape);
  const int64_t columns = values.shape()[1];
  for (size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(row_of(values, static_cast<int64_t>(i)),
                      dense.mutable_data() + rows[i] * columns);
  }
  return dense;
}

void JoinRowGradients::operator()(RowGradient& left, RowGradient&& right) const {
  const int64_t columns = left.values.shape()[1];
  left = merged(left, right.rows, columns, [&](std::span<float> into, int64_t l, int64_t r) {
    std::ranges::copy(l >= 0 ? row_of(left.values, l) : row_of(right.values, r), into.begin());
    if (l >= 0 && r >= 0) accumulate(row_of(right.values, r), into);
  });
}

}  // namespace lacuna
