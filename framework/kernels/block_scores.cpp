// Columns are added up over a tile's rows first, as many side by side as a stack buffer holds, then
// the columns of each tile. The order of a tile's sum depends on the tile's shape alone.
#include "lacuna/framework/kernels/block_scores.h"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/block_scores_reference.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/block_scores.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

constexpr int64_t kBuffer = 1024;  // columns: 4 KiB

// sums[c] = Σ of |w| or w² over the rows.
template <TileNorm kNorm>
HWY_INLINE void column_sums(const float* weights, int64_t rows, int64_t stride, int64_t columns,
                            float* sums) {
  const auto add = [](Vector sum, Vector w) HWY_ATTR {
    return kNorm == TileNorm::L1 ? hn::Add(sum, hn::Abs(w)) : hn::MulAdd(w, w, sum);
  };
  map([add](Vector w) HWY_ATTR { return add(hn::Zero(Floats()), w); }, columns, sums, weights);
  for (int64_t r = 1; r < rows; ++r) {
    map(add, columns, sums, static_cast<const float*>(sums), weights + r * stride);
  }
}

// Four partial sums, then those left over.
HWY_INLINE float sum_of_columns(const float* sums, int64_t columns) {
  float part[4] = {};
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    for (int i = 0; i < 4; ++i) part[i] += sums[c + i];
  }
  for (; c < columns; ++c) part[0] += sums[c];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

template <TileNorm kNorm>
HWY_INLINE void scores_of(const TileShape& tile, const float* weights, int64_t stride,
                          int64_t count, float* scores) {
  HWY_ALIGN float sums[kBuffer];
  const int64_t at_once = std::max<int64_t>(kBuffer / tile.columns, 1);  // tiles
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t tiles = std::min(at_once, count - first);
    std::fill_n(scores + first, tiles, 0.0f);
    for (int64_t c = 0; c < tile.columns; c += kBuffer) {  // once, but for tiles wider than that
      const int64_t columns = std::min(tile.columns - c, kBuffer);
      column_sums<kNorm>(weights + first * tile.columns + c, tile.rows, stride, tiles * columns,
                         sums);
      for (int64_t t = 0; t < tiles; ++t) {
        scores[first + t] += sum_of_columns(sums + t * columns, columns);
      }
    }
  }
  if (kNorm == TileNorm::L2) {
    for (int64_t t = 0; t < count; ++t) scores[t] = std::sqrt(scores[t]);
  }
}

void tile_scores(TileNorm norm, const TileShape& tile, const float* weights, int64_t stride,
                 int64_t count, float* scores) {
  (norm == TileNorm::L1 ? scores_of<TileNorm::L1> : scores_of<TileNorm::L2>)(tile, weights, stride,
                                                                             count, scores);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(tile_scores);

constexpr int64_t kTask = 1 << 15;  // weights: about as long as starting a thread takes

auto choose_scores() {
  return use_reference_kernels() ? reference::tile_scores : HWY_DYNAMIC_DISPATCH(tile_scores);
}

}  // namespace

void block_scores(TileNorm norm, const TileShape& tile, const float* weights, int64_t rows,
                  int64_t columns, float* scores) {
  const auto run = choose_scores();
  const int64_t tile_rows = rows / tile.rows, tiles = columns / tile.columns;
  const int64_t grain = std::max<int64_t>(1, kTask / std::max<int64_t>(1, tile.rows * columns));
  parallel_for(tile_rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run(norm, tile, weights + i * tile.rows * columns, columns, tiles, scores + i * tiles);
    }
  });
}

void stored_block_scores(TileNorm norm, const TileShape& tile, std::span<const float> weights,
                         std::span<const int64_t> row_begin, std::span<float> scores) {
  const auto run = choose_scores();
  const auto tile_rows = static_cast<int64_t>(row_begin.size()) - 1;
  const int64_t size = tile.rows * tile.columns;
  const int64_t mean = static_cast<int64_t>(weights.size()) / std::max<int64_t>(1, tile_rows);
  const int64_t grain = std::max<int64_t>(1, kTask / std::max<int64_t>(1, mean));
  parallel_for(tile_rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = row_begin[static_cast<size_t>(i)] - row_begin.front();
      const int64_t tiles =
          row_begin[static_cast<size_t>(i) + 1] - row_begin[static_cast<size_t>(i)];
      run(norm, tile, weights.data() + first * size, tiles * tile.columns, tiles,
          scores.data() + first);
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
