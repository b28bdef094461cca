#include "lacuna/framework/kernels/attention/head_rows.hpp"

#include <algorithm>

#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

// Calls body(row of the place, rows, where they start) for each run of rows that lie in one slab.
template <class Body>
void for_each_run(const HeadPlace& place, int64_t features, const Body& body) {
  for (int64_t r = 0; r < place.rows;) {
    const int64_t row = place.first_row + r, lane = row % kSlabWidth;
    const int64_t rows = std::min(kSlabWidth - lane, place.rows - r);
    body(r, rows, (row / kSlabWidth * features + place.first_column) * kSlabWidth + lane);
    r += rows;
  }
}

}  // namespace

void read_head(const Tensor& x, const HeadPlace& place, int64_t stride, float* into) {
  const int64_t features = x.shape().features();
  const float* from = x.data(x.order());
  if (x.order() == Order::RowMajor) {
    from += place.first_row * features + place.first_column;
    for (int64_t r = 0; r < place.rows; ++r) {
      std::copy_n(from + r * features, place.columns, into + r * stride);
    }
    return;
  }
  const Transposition transpose = transposition();
  for_each_run(place, features, [&](int64_t first, int64_t rows, int64_t start) {
    transpose(from + start, kSlabWidth, into + first * stride, stride, place.columns, rows);
  });
}

void write_head(const float* from, int64_t stride, const HeadPlace& place, Tensor& x) {
  const int64_t features = x.shape().features();
  float* into = x.mutable_data(x.order());
  if (x.order() == Order::RowMajor) {
    into += place.first_row * features + place.first_column;
    for (int64_t r = 0; r < place.rows; ++r) {
      std::copy_n(from + r * stride, place.columns, into + r * features);
    }
    return;
  }
  const Transposition transpose = transposition();
  for_each_run(place, features, [&](int64_t first, int64_t rows, int64_t start) {
    transpose(from + first * stride, stride, into + start, kSlabWidth, rows, place.columns);
  });
}

void transpose_head(const float* from, int64_t stride, int64_t rows, int64_t columns, float* into) {
  transposition()(from, stride, into, rows, rows, columns);
}

}  // namespace lacuna
