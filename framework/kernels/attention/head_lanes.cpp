// A run of lanes is copied by whole vectors, the last of which overlaps the one before it. So
// nothing outside the run is read or written: other threads may be writing the lanes next to it.
#include "lacuna/framework/kernels/attention/head_lanes.hpp"

#include <algorithm>

#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/attention/head_lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void copy_short_runs(const float* from, int64_t from_row, float* to, int64_t to_row, int64_t rows,
                     int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const Floats d;
  const auto valid = hn::FirstN(d, static_cast<size_t>(count));
  for (int64_t r = 0; r < rows; ++r) {
    hn::BlendedStore(hn::MaskedLoad(valid, d, from + r * from_row), valid, d, to + r * to_row);
  }
#else
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < count; ++i) to[r * to_row + i] = from[r * from_row + i];
  }
#endif
}

void copy_runs(const float* from, int64_t from_row, float* to, int64_t to_row, int64_t rows,
               int64_t count) {
  const Floats d;
  const int64_t lanes = lane_count();
  if (count < lanes) return copy_short_runs(from, from_row, to, to_row, rows, count);
  for (int64_t r = 0; r < rows; ++r, from += from_row, to += to_row) {
    for (int64_t i = 0; i + lanes <= count; i += lanes) {
      hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    }
    const int64_t end = count - lanes;
    if (count % lanes != 0) hn::StoreU(hn::LoadU(d, from + end), d, to + end);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(copy_runs);

// Calls body(row of the place, rows, their start) for each run of rows within one slab.
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

bool lies_on_slabs(int64_t tokens) {
  return tokens % kSlabWidth == 0 || tokens == 32 || tokens == 16;
}

void read_head(const Tensor& x, const HeadPlace& place, int64_t stride, float* into) {
  const int64_t features = x.shape().features();
  const float* from = x.data(x.order());
  if (x.order() == Order::RowMajor) {
    from += place.first_row * features + place.first_column;
    return transposition()(from, features, into, stride, place.rows, place.columns);
  }
  const auto copy = HWY_DYNAMIC_DISPATCH(copy_runs);
  for_each_run(place, features, [&](int64_t first, int64_t rows, int64_t start) {
    copy(from + start, kSlabWidth, into + first, stride, place.columns, rows);
  });
}

void write_head(const float* from, int64_t stride, const HeadPlace& place, Tensor& x) {
  const int64_t features = x.shape().features();
  float* into = x.mutable_data(x.order());
  if (x.order() == Order::RowMajor) {
    into += place.first_row * features + place.first_column;
    return transposition()(from, stride, into, features, place.columns, place.rows);
  }
  const auto copy = HWY_DYNAMIC_DISPATCH(copy_runs);
  for_each_run(place, features, [&](int64_t first, int64_t rows, int64_t start) {
    copy(from + first, stride, into + start, kSlabWidth, place.columns, rows);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
