// Row-major: a task sums up to 128 rows of up to 512 columns, four vectors of columns at a time in
// registers; the sums of the row blocks are then added in double, in order. In batch slabs, a task
// sums some features over the slabs in the order of memory, with a vector of sums for each feature.
// Feature by feature, with a jump every 256 bytes, was seven times slower from memory (AMD Zen 4,
// [8320, 128]). Tasks have 32768 elements, because starting a thread costs about as much as summing
// that many.
#include "lacuna/framework/kernels/rowwise/reduce.hpp"

#include <algorithm>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/block_sum.hpp"
#include "lacuna/framework/kernels/rowwise/reduce_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void sum_columns_range(const float* x, int64_t rows, int64_t stride, int64_t columns, float* sums) {
  const Floats d;
  const int64_t lanes = lane_count();
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    Vector s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const float* row = x + c;
    for (int64_t r = 0; r < rows; ++r, row += stride) {
      s0 = hn::Add(s0, hn::LoadU(d, row));
      s1 = hn::Add(s1, hn::LoadU(d, row + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, row + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, row + 3 * lanes));
    }
    hn::StoreU(s0, d, sums + c);
    hn::StoreU(s1, d, sums + c + lanes);
    hn::StoreU(s2, d, sums + c + 2 * lanes);
    hn::StoreU(s3, d, sums + c + 3 * lanes);
  }
  for (; c + lanes <= columns; c += lanes) {
    Vector s = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) s = hn::Add(s, hn::LoadU(d, x + r * stride + c));
    hn::StoreU(s, d, sums + c);
  }
  if (c < columns) {
    Vector s = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) s = hn::Add(s, load_part(x + r * stride + c, columns - c));
    store_part(s, sums + c, columns - c);
  }
}

double sum_range(const float* x, int64_t count) {
  return sum_of([](Vector v) HWY_ATTR { return v; }, count, x);
}

// totals[c] += the sum of feature c in whole slabs, `stride` floats apart: in floats over 64 slabs
// at a time, in double over those sums. Prefetches the same part of the next slab.
void add_slabs(const float* x, int64_t slabs, int64_t stride, int64_t features, double* totals) {
  constexpr int64_t kSlabs = 64, kFeatures = 64;
  const Floats d;
  const int64_t lanes = lane_count();
  HWY_ALIGN float sums[kFeatures * hn::MaxLanes(d)];
  for (int64_t first = 0; first < features; first += kFeatures) {
    const int64_t count = first + kFeatures < features ? kFeatures : features - first;
    for (int64_t begin = 0; begin < slabs; begin += kSlabs) {
      const int64_t end = begin + kSlabs < slabs ? begin + kSlabs : slabs;
      for (int64_t c = 0; c < count; ++c) hn::Store(hn::Zero(d), d, sums + c * lanes);
      for (int64_t s = begin; s < end; ++s) {
        const float* row = x + s * stride + first * kSlabWidth;
        for (int64_t c = 0; c < count; ++c, row += kSlabWidth) {
          for (int64_t i = 0; i < kSlabWidth; i += 16) __builtin_prefetch(row + stride + i, 0, 2);
          Vector sum0 = hn::LoadU(d, row), sum1 = hn::Load(d, sums + c * lanes);
          for (int64_t i = lanes; i < kSlabWidth; i += 2 * lanes) {
            sum1 = hn::Add(sum1, hn::LoadU(d, row + i));
            if (i + lanes < kSlabWidth) sum0 = hn::Add(sum0, hn::LoadU(d, row + i + lanes));
          }
          hn::Store(hn::Add(sum0, sum1), d, sums + c * lanes);
        }
      }
      for (int64_t c = 0; c < count; ++c) {
        const Vector sum = hn::SumOfLanes(d, hn::Load(d, sums + c * lanes));
        totals[first + c] += static_cast<double>(hn::GetLane(sum));
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(sum_columns_range);
HWY_EXPORT(sum_range);
HWY_EXPORT(add_slabs);

constexpr int64_t kRowBlock = 128, kColumnBlock = 512, kReduceTask = 1 << 15;

auto choose_sum() {
  return use_reference_kernels() ? reference::sum<float> : HWY_DYNAMIC_DISPATCH(sum_range);
}

// sums[b, c] = Σ of row block b.
void sum_row_blocks(const float* x, int64_t rows, int64_t columns, int64_t row_blocks,
                    float* sums) {
  const auto range = use_reference_kernels() ? reference::sum_columns<float>
                                             : HWY_DYNAMIC_DISPATCH(sum_columns_range);
  const int64_t column_blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  const int64_t task = std::min(rows, kRowBlock) * std::min(columns, kColumnBlock);
  const int64_t grain = rows_per_task(task, kReduceTask);
  parallel_for(row_blocks * column_blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / column_blocks * kRowBlock, c = i % column_blocks * kColumnBlock;
      range(x + r * columns + c, std::min(kRowBlock, rows - r), columns,
            std::min(kColumnBlock, columns - c), sums + i / column_blocks * columns + c);
    }
  });
}

// Like add_slabs of an instruction set.
void add_slabs_reference(const float* x, int64_t slabs, int64_t stride, int64_t features,
                         double* totals) {
  for (int64_t s = 0; s < slabs; ++s) {
    for (int64_t c = 0; c < features; ++c) {
      totals[c] += reference::sum<float>(x + s * stride + c * kSlabWidth, kSlabWidth);
    }
  }
}

void sum_slabs(const Tensor& x, float* sums) {
  const auto add = use_reference_kernels() ? add_slabs_reference : HWY_DYNAMIC_DISPATCH(add_slabs);
  const auto range = choose_sum();
  const int64_t rows = x.shape().batch(), columns = x.shape().features();
  const int64_t slabs = rows / kSlabWidth, rest = rows % kSlabWidth, stride = columns * kSlabWidth;
  const float* data = x.data(Order::BatchSlabs);
  constexpr int64_t kFeatures = 64;  // 16 KiB of a slab
  const int64_t grain = std::max(kFeatures, kReduceTask / std::max<int64_t>(1, rows));
  parallel_for(columns, grain, [&](int64_t begin, int64_t end) {
    std::vector<double> totals(static_cast<size_t>(end - begin));
    add(data + begin * kSlabWidth, slabs, stride, end - begin, totals.data());
    for (int64_t c = begin; c < end; ++c) {
      double& total = totals[static_cast<size_t>(c - begin)];
      // The padding of the last slab need not be zero.
      if (rest > 0) total += range(data + slabs * stride + c * kSlabWidth, rest);
      sums[c] = static_cast<float>(total);
    }
  });
}

}  // namespace

Tensor sum_rows(const Tensor& x) {
  const int64_t rows = x.shape().batch(), columns = x.shape().features();
  Tensor sums = Tensor::zeros({columns});
  if (rows == 0 || columns == 0) return sums;
  if (is_of_images(x.order())) return sum_rows(reordered(x, Order::RowMajor));
  if (x.order() == Order::BatchSlabs) {
    sum_slabs(x, sums.mutable_data());
    return sums;
  }
  const int64_t row_blocks = (rows + kRowBlock - 1) / kRowBlock;
  if (row_blocks == 1) {
    sum_row_blocks(x.data(), rows, columns, 1, sums.mutable_data());
    return sums;
  }
  Tensor parts = Tensor::empty({row_blocks, columns});
  sum_row_blocks(x.data(), rows, columns, row_blocks, parts.mutable_data());
  const float* part = parts.data();
  float* out = sums.mutable_data();
  for (int64_t c = 0; c < columns; ++c) {
    double total = 0.0;
    for (int64_t b = 0; b < row_blocks; ++b) total += part[b * columns + c];
    out[c] = static_cast<float>(total);
  }
  return sums;
}

double sum(std::span<const float> values) {
  const auto range = choose_sum();
  return sum_blocks(
      static_cast<int64_t>(values.size()), kReduceTask,
      [&](int64_t begin, int64_t end) { return range(values.data() + begin, end - begin); });
}

}  // namespace lacuna
#endif  // HWY_ONCE
