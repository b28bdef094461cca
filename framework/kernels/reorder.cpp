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

// to[column · to_stride + row] = from[row · from_stride + column].
void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                    int64_t rows, int64_t columns) {
  int64_t column = 0;
#if HWY_TARGET != HWY_SCALAR
  using Quad = hn::FixedTag<float, 4>;
  const Quad d;
  const hn::Repartition<uint64_t, Quad> u;
  for (; column + 4 <= columns; column += 4) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
      const float* at = from + row * from_stride + column;
      const auto a = hn::LoadU(d, at), b = hn::LoadU(d, at + from_stride),
                 c = hn::LoadU(d, at + 2 * from_stride), e = hn::LoadU(d, at + 3 * from_stride);
      const auto ab = hn::BitCast(u, hn::InterleaveLower(d, a, b));
      const auto ce = hn::BitCast(u, hn::InterleaveLower(d, c, e));
      const auto ab_high = hn::BitCast(u, hn::InterleaveUpper(d, a, b));
      const auto ce_high = hn::BitCast(u, hn::InterleaveUpper(d, c, e));
      float* into = to + column * to_stride + row;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(u, ab, ce)), d, into);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(u, ab, ce)), d, into + to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(u, ab_high, ce_high)), d, into + 2 * to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(u, ab_high, ce_high)), d, into + 3 * to_stride);
    }
    for (; row < rows; ++row) {
      for (int64_t c = column; c < column + 4; ++c) {
        to[c * to_stride + row] = from[row * from_stride + c];
      }
    }
  }
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
