#include "lacuna/framework/kernels/attention/head_rows.h"

#include <algorithm>

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
  for_each_run(place, features, [&](int64_t first, int64_t rows, int64_t start) {
    for (int64_t c = 0; c < place.columns; ++c) {
      const float* column = from + start + c * kSlabWidth;
      for (int64_t r = 0; r < rows; ++r) into[(first + r) * stride + c] = column[r];
    }
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
  for_each_run(place, features, [&](int64_t first, int64_t rows, int64_t start) {
    for (int64_t c = 0; c < place.columns; ++c) {
      float* column = into + start + c * kSlabWidth;
      for (int64_t r = 0; r < rows; ++r) column[r] = from[(first + r) * stride + c];
    }
  });
}

void transpose_head(const float* from, int64_t stride, int64_t rows, int64_t columns, float* into) {
  constexpr int64_t kRows = 16;  // a line of what is written
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t end = std::min(row + kRows, rows);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = row; r < end; ++r) into[c * rows + r] = from[r * stride + c];
    }
  }
}

}  // namespace lacuna
