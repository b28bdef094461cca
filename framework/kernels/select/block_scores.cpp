// First the rows of a tile are added column by column, for as many columns as a stack buffer holds,
// then the columns of each tile. The order of a tile's sum depends only on the tile's shape.
#include "lacuna/framework/kernels/select/block_scores.hpp"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/select/block_scores_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/select/block_scores.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/groups_of_four.inc"
#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

constexpr int64_t kBuffer = 1024;  // columns: 4 KiB

// sums[c] = Σ of |w| or w² over the rows.
template <PatternShape::Norm kNorm>
HWY_INLINE void column_sums(const float* weights, int64_t rows, int64_t stride, int64_t columns,
                            float* sums) {
  const auto add = [](Vector sum, Vector w) HWY_ATTR {
    return kNorm == PatternShape::Norm::L1 ? hn::Add(sum, hn::Abs(w)) : hn::MulAdd(w, w, sum);
  };
  map([add](Vector w) HWY_ATTR { return add(hn::Zero(Floats()), w); }, columns, sums, weights);
  for (int64_t r = 1; r < rows; ++r) {
    map(add, columns, sums, static_cast<const float*>(sums), weights + r * stride);
  }
}

// Four partial sums, then the remaining columns.
HWY_INLINE float sum_of_columns(const float* sums, int64_t columns) {
  float part[4] = {};
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    for (int i = 0; i < 4; ++i) part[i] += sums[c + i];
  }
  for (; c < columns; ++c) part[0] += sums[c];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE int64_t add_by_vectors(float*, int64_t, int64_t, float*) { return 0; }
#else

// Reduces in place to the partial sums of sum_of_columns if four divide the columns: four per tile.
HWY_INLINE void fold_to_four(float* sums, int64_t tiles, int64_t columns) {
  const hn::FixedTag<float, 4> d;
  for (int64_t t = 0; t < tiles; ++t) {
    auto part = hn::LoadU(d, sums + t * columns);
    for (int64_t c = 4; c < columns; c += 4)
      part = hn::Add(part, hn::LoadU(d, sums + t * columns + c));
    hn::StoreU(part, d, sums + 4 * t);
  }
}

// scores += sum_of_columns, for as many tiles as fill whole vectors. Returns their number; the sums
// of the other tiles stay unchanged.
HWY_INLINE int64_t add_by_vectors(float* sums, int64_t tiles, int64_t columns, float* scores) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> i;
  const auto lanes = static_cast<int64_t>(hn::MaxLanes(d));
  if (columns % 4 != 0) return 0;
  const int64_t count = tiles / lanes * lanes;
  if (columns > 4) fold_to_four(sums, count, columns);
  for (int64_t t = 0; t < count; t += lanes) {
    hn::Vec<decltype(d)> of[4];
    load_fours(d, sums + 4 * t, of);
    const auto sum = hn::Add(hn::Add(of[0], of[1]), hn::Add(of[2], of[3]));
    const auto ordered = hn::BitCast(d, in_order(i, hn::BitCast(i, sum)));
    hn::StoreU(hn::Add(hn::LoadU(d, scores + t), ordered), d, scores + t);
  }
  return count;
}

#endif

HWY_INLINE void add_sums(float* sums, int64_t tiles, int64_t columns, float* scores) {
  if (columns == 1) {
    map([](Vector score, Vector sum) HWY_ATTR { return hn::Add(score, sum); }, tiles, scores,
        static_cast<const float*>(scores), static_cast<const float*>(sums));
    return;
  }
  for (int64_t t = add_by_vectors(sums, tiles, columns, scores); t < tiles; ++t) {
    scores[t] += sum_of_columns(sums + t * columns, columns);
  }
}

template <PatternShape::Norm kNorm>
HWY_INLINE void scores_of(const PatternShape& pattern, const float* weights, int64_t stride,
                          int64_t count, float* scores) {
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  HWY_ALIGN float sums[kBuffer];
  const int64_t at_once = std::max<int64_t>(kBuffer / width, 1);  // tiles
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t tiles = std::min(at_once, count - first);
    std::fill_n(scores + first, tiles, 0.0f);
    for (int64_t c = 0; c < width; c += kBuffer) {  // only once, unless tiles are wider
      const int64_t columns = std::min(width - c, kBuffer);
      column_sums<kNorm>(weights + first * width + c, height, stride, tiles * columns, sums);
      add_sums(sums, tiles, columns, scores + first);
    }
  }
  if (kNorm == PatternShape::Norm::L2) {
    for (int64_t t = 0; t < count; ++t) scores[t] = std::sqrt(scores[t]);
  }
}

void unit_scores(const PatternShape& pattern, const float* weights, int64_t stride, int64_t count,
                 float* scores) {
  const bool is_sum = pattern.norm() == PatternShape::Norm::L1;
  (is_sum ? scores_of<PatternShape::Norm::L1>
          : scores_of<PatternShape::Norm::L2>)(pattern, weights, stride, count, scores);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(unit_scores);

constexpr int64_t kTask = 1 << 15;  // weights: about as long as a thread takes to start

}  // namespace

void block_scores(const PatternShape& pattern, const float* weights, int64_t rows, int64_t columns,
                  float* scores) {
  const auto run =
      use_reference_kernels() ? reference::unit_scores : HWY_DYNAMIC_DISPATCH(unit_scores);
  const int64_t height = pattern.unit_rows(), units = columns / pattern.unit_columns();
  const int64_t grain = rows_per_task(height * columns, kTask);
  parallel_for(rows / height, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run(pattern, weights + i * height * columns, columns, units, scores + i * units);
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
