// The input gradient of cells of one column over batch slabs, by scatter.
//
// The output gradients of a row of cells stay in registers. Each column of the tile is loaded,
// added to and stored: one store per eight (four) multiply-adds, and no transposed index. A tile of
// columns belongs to one thread, which processes the rows in the stream's order.
#include "lacuna/framework/kernels/blocks/block_products.hpp"

#include <algorithm>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/blocks/block_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/blocks/block_scatter.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/blocks/block_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void scatter_tile(const BlockStream& s, int64_t column_tile, const float* values, const float* dy,
                  int64_t width, const float* bias, float* dx, bool) {
  reference::block_scatter_tile(s, column_tile, values, dy, width, bias, dx, false);
}
#else

// dX of each column += Σ of kPart of kRows weights times the rows' output gradients (in registers).
template <int kRows, int kPart, int kVectors>
HWY_INLINE void scatter_part(const Run& run, const float* values, const uint16_t* offsets,
                             const char* dy, char* dx) {
  Vector in[kPart][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kPart; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) in[r][v] = load(dy + r * kSlabRowBytes, v);
  }
  for (int64_t k = 0; k < run.length; ++k, values += kRows) {
    char* out = dx + offsets[k] * kSlabRowBytes;
    Vector sum[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) sum[v] = load(out, v);
    HWY_UNROLL(8)
    for (int r = 0; r < kPart; ++r) {
      const Vector value = hn::Set(Floats(), values[r]);
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(value, in[r][v], sum[v]);
    }
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) store(sum[v], out, v);
  }
}

template <int kRows, int kPart, int kVectors>
HWY_NOINLINE void scatter_rows(const Run& run) {
  for (int64_t i = 0; i < run.count; ++i) {
    const int64_t first = i * run.length;
    const char* dy = run.x + run.rows[i] * (kRows * kSlabRowBytes);
    const char* ahead = run.x + run.rows[i + 1] * (kRows * kSlabRowBytes);
    for (int64_t line = 0; line < kRows * kSlabRowBytes; line += 64)
      __builtin_prefetch(ahead + line);
    prefetch_next_slab(run, i, dy, kRows * kSlabRowBytes);
    for (int64_t pass = 0; pass < run.passes; ++pass) {
      const int64_t at = pass * kVectors * kVectorBytes;
      for (int part = 0; part < kRows; part += kPart) {
        scatter_part<kRows, kPart, kVectors>(run, run.values + first * kRows + part,
                                             run.offsets + first, dy + part * kSlabRowBytes + at,
                                             run.y + at);
      }
    }
  }
}

void scatter_tile(const BlockStream& s, int64_t column_tile, const float* values, const float* dy,
                  int64_t width, const float* bias, float* dx, bool prefetch_next) {
  const int64_t first = column_tile * s.cells.tile_columns;
  const int64_t columns = std::min(s.cells.tile_columns, s.cells.columns - first);
  Run run{.x = reinterpret_cast<const char*>(dy),
          .y = reinterpret_cast<char*>(dx + first * kSlabWidth)};
  [[maybe_unused]] constexpr int kPart = kManyRegisters ? 8 : 4;
  const RunFunction function =
      s.cell.unit_rows() == 8
          ? with_vectors<2>(width, run,
                            []<int n>(Vectors<n>)
                                HWY_ATTR { return RunFunction(scatter_rows<8, kPart, n>); })
          : with_vectors<kMostVectors>(width, run, []<int n>(Vectors<n>) HWY_ATTR {
              return RunFunction(scatter_rows<4, 4, n>);
            });
  if (prefetch_next) {  // the first tile asks for the output gradients, each for its own columns
    run.next_row = column_tile == 0 ? s.rows() * kSlabRowBytes : kSlabRowBytes;
    run.shared = run.y + s.columns() * kSlabRowBytes;
    run.shared_lines = lines_for_each(columns * kSlabRowBytes, s.cells.rows);
  }
  float* out = dx + first * kSlabWidth;
  std::fill_n(out, columns * kSlabWidth, 0.0f);
  for (int64_t c = 0; bias != nullptr && c < columns; ++c) {
    std::fill_n(out + c * kSlabWidth, width, bias[first + c]);
  }
  for (uint32_t i = s.tile_begin[static_cast<size_t>(column_tile)];
       i < s.tile_begin[static_cast<size_t>(column_tile) + 1]; ++i) {
    for_each_run(s.cells, s.cells.tiles[s.tile_order[i]], run, [&](int64_t cell) HWY_ATTR {
      run.values = values + cell * s.cell.unit_rows();
      if (run.length > 0) function(run);
    });
  }
}
#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(scatter_tile);

}  // namespace

void block_input_gradient(const BlockStream& s, const float* values, const float* dy, int64_t batch,
                          const float* bias, float* dx) {
  const auto run =
      use_reference_kernels() ? reference::block_scatter_tile : HWY_DYNAMIC_DISPATCH(scatter_tile);
  const auto tiles = static_cast<int64_t>(s.tile_begin.size()) - 1;
  for_each_slab_part(batch, tiles, [&](int64_t slab, int64_t tile, int64_t width, bool has_next) {
    run(s, tile, values, dy + slab * s.rows() * kSlabWidth, width, bias,
        dx + slab * s.columns() * kSlabWidth, has_next);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
