// Transposes blocks of as many rows as a vector has lanes, by four columns, in four registers: four
// columns of a row are a block of a register, so the steps are those of a 4 × 4 transposition.
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/reorder_images.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/reorder.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// Four floats of every fourth row, as many as fill a vector.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* from, int64_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    const auto kRows = static_cast<int64_t>(hn::MaxLanes(half));
    return hn::Combine(d, load_blocks(half, from + kRows * stride, stride),
                       load_blocks(half, from, stride));
  }
}

// As many rows as D has lanes, by four columns.
template <class D>
HWY_INLINE void transpose_strip(D d, const float* from, int64_t from_stride, float* to,
                                int64_t to_stride) {
  const hn::Repartition<uint64_t, D> u;
  const auto a = load_blocks(d, from, from_stride),
             b = load_blocks(d, from + from_stride, from_stride),
             c = load_blocks(d, from + 2 * from_stride, from_stride),
             e = load_blocks(d, from + 3 * from_stride, from_stride);
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
  int64_t first_single = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<float, 16> d;
  const hn::FixedTag<float, 4> quad;
  const auto kStrip = static_cast<int64_t>(hn::Lanes(d));
  // Row-major rows are often a multiple of 4 KiB apart, so they share few sets of the cache. So
  // each of their lines is read or written completely at once, line after line of a few rows, in an
  // order that the prefetcher recognizes.
  first_single = columns / 4 * 4;
  const int64_t line = from_stride > to_stride ? std::max<int64_t>(first_single, 1) : 16;
  for (int64_t column = 0; column < first_single; column += line) {
    const int64_t end = std::min(column + line, first_single);
    int64_t row = 0;
    const auto strip = [&](auto tag) HWY_ATTR {
      for (int64_t c = column; c < end; c += 4) {
        transpose_strip(tag, from + row * from_stride + c, from_stride, to + c * to_stride + row,
                        to_stride);
      }
    };
    for (; row + kStrip <= rows; row += kStrip) strip(d);
    for (; row + 4 <= rows; row += 4) strip(quad);
    for (; row < rows; ++row) {
      for (int64_t c = column; c < end; ++c) to[c * to_stride + row] = from[row * from_stride + c];
    }
  }
#endif
  for (int64_t column = first_single; column < columns; ++column) {
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

thread_local ConversionCount counted;

void transpose_plainly(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                       int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      to[column * to_stride + row] = from[row * from_stride + column];
    }
  }
}

}  // namespace

Transposition transposition() {
  return use_reference_kernels() ? transpose_plainly : HWY_DYNAMIC_DISPATCH(transpose_tile);
}

ConversionCount conversions_so_far() { return counted; }

Tensor reordered(const Tensor& tensor, Order order) {
  if (tensor.order() == order) return tensor;
  counted = counted + ConversionCount{1, tensor.numel() * static_cast<int64_t>(sizeof(float))};
  if (use_reference_kernels()) return tensor.to(order);
  if (is_of_images(order) || is_of_images(tensor.order())) return reordered_images(tensor, order);
  constexpr int64_t kFeatures = 64;  // features of a slab, 16 KiB on either side
  const auto transpose = transposition();
  const int64_t batch = tensor.shape().batch(), features = tensor.shape().features();
  Tensor converted = Tensor::empty(tensor.shape(), order);
  const float* from = tensor.data(tensor.order());
  float* to = converted.mutable_data(order);
  const int64_t slabs = (batch + kSlabWidth - 1) / kSlabWidth;
  const int64_t parts = (features + kFeatures - 1) / kFeatures;
  constexpr int64_t kPartsPerTask = 4;  // 64 KiB: smaller tasks cost more than they save
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

void slab_of_rows(const float* rows, int64_t count, int64_t features, float* slab) {
  transposition()(rows, features, slab, kSlabWidth, count, features);
  if (count == kSlabWidth) return;
  for (int64_t i = 0; i < features; ++i) {
    std::fill(slab + i * kSlabWidth + count, slab + (i + 1) * kSlabWidth, 0.0f);
  }
}

void rows_of_slab(const float* slab, int64_t count, int64_t features, float* rows) {
  transposition()(slab, kSlabWidth, rows, features, features, count);
}

void transpose_matrices(int64_t count, int64_t rows, int64_t columns, const float* from,
                        float* to) {
  const auto transpose = transposition();
  parallel_blocks(count, [&](int64_t matrix) {
    const int64_t start = matrix * rows * columns;
    transpose(from + start, columns, to + start, rows, rows, columns);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
