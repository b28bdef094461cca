// Four rows by four columns are transposed in four registers. A task takes 64 features of one slab,
// 16 KiB on either side, so that cache lines that are read in parts are still near when the rest is
// wanted.
#include "lacuna/framework/kernels/reorder.h"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/reorder.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
HWY_INLINE void transpose_four(const float* from, int64_t from_stride, float* to,
                               int64_t to_stride) {
  using Quad = hn::FixedTag<float, 4>;
  const Quad d;
  const hn::Repartition<uint64_t, Quad> u;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride),
             c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto ab = hn::BitCast(u, hn::InterleaveLower(d, a, b));
  const auto ce = hn::BitCast(u, hn::InterleaveLower(d, c, e));
  const auto ab_high = hn::BitCast(u, hn::InterleaveUpper(d, a, b));
  const auto ce_high = hn::BitCast(u, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(u, ab, ce)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(u, ab, ce)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(u, ab_high, ce_high)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(u, ab_high, ce_high)), d, to + 3 * to_stride);
}
#endif

// to[column · to_stride + row] = from[row · from_stride + column].
void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                    int64_t rows, int64_t columns) {
  int64_t column = 0;
#if HWY_TARGET != HWY_SCALAR
  // Row-major rows are often a multiple of 4 KiB apart, which fall on the same few places of the
  // cache: a line of theirs is read or written whole while it is there, 16 columns of four rows.
  const int64_t line = from_stride > to_stride ? 16 : 4;
  for (; column + 4 <= columns; column += line) {
    const int64_t end = std::min(column + line, columns) - 3;
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
      for (int64_t c = column; c < end; c += 4) {
        transpose_four(from + row * from_stride + c, from_stride, to + c * to_stride + row,
                       to_stride);
      }
    }
    for (; row < rows; ++row) {
      for (int64_t c = column; c < column + (end + 3 - column) / 4 * 4; ++c) {
        to[c * to_stride + row] = from[row * from_stride + c];
      }
    }
  }
  column = columns / 4 * 4;
#endif
  for (; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      to[column * to_stride + row] = from[row * from_stride + column];
    }
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(transpose_tile);

}  // namespace

Tensor reordered(const Tensor& tensor, Order order) {
  if (tensor.order() == order || use_reference_kernels()) return tensor.to(order);
  constexpr int64_t kFeatures = 64;
  const auto transpose = HWY_DYNAMIC_DISPATCH(transpose_tile);
  const int64_t batch = tensor.shape().batch(), features = tensor.shape().features();
  Tensor converted = Tensor::empty(tensor.shape(), order);
  const float* from = tensor.data(tensor.order());
  float* to = converted.mutable_data(order);
  const int64_t slabs = (batch + kSlabWidth - 1) / kSlabWidth;
  const int64_t parts = (features + kFeatures - 1) / kFeatures;
  constexpr int64_t kPartsPerTask = 4;  // 64 KiB: smaller tasks cost more than they gain
  parallel_for(slabs * parts, kPartsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t slab = part / parts, feature = part % parts * kFeatures;
      const int64_t rows = std::min(kSlabWidth, batch - slab * kSlabWidth);
      const int64_t columns = std::min(kFeatures, features - feature);
      const int64_t in_rows = slab * kSlabWidth * features + feature;
      const int64_t in_slabs = (slab * features + feature) * kSlabWidth;
      if (order == Order::BatchSlabs) {
        transpose(from + in_rows, features, to + in_slabs, kSlabWidth, rows, columns);
      } else {
        transpose(from + in_slabs, kSlabWidth, to + in_rows, features, columns, rows);
      }
    }
  });
  return converted;
}

}  // namespace lacuna
#endif  // HWY_ONCE
