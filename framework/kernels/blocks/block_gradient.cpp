// The weight gradient of cells over batch slabs.
//
// Sums cover two slabs before they are reduced, four together into one 16-byte store: a reduction
// costs about half as much as the multiply-adds of one slab. Cells of one column are processed four
// rows at a time. The rows' output gradients of one slab stay in registers; those of the other are
// read from the first-level cache. 4 × 4 cells have sixteen sums (eight with 16 registers), for
// which eight loads serve sixteen multiply-adds. Larger blocks need no reduction
// (large_block_gradient.inc).
#include "lacuna/framework/kernels/blocks/block_gradient.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/blocks/block_reference.hpp"
#include "lacuna/framework/kernels/blocks/cell_rows.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/batch_lanes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/blocks/block_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/slab.inc"

#ifndef LACUNA_GROUPED_GRADIENT_RUN
#define LACUNA_GROUPED_GRADIENT_RUN
namespace lacuna {
namespace {

// Rows of cells of one length, in one tile of a few consecutive slabs.
struct GradientRun {
  const char* x = nullptr;   // the tile's first row of the first slab
  const char* dy = nullptr;  // the first slab
  float* gradient = nullptr;
  float* lanes = nullptr;  // BatchLanes; null: not needed, or not in this tile
  const uint32_t* rows = nullptr;
  const uint16_t* offsets = nullptr;
  int64_t count = 0;                    // rows
  int64_t length = 0;                   // cells of each
  int64_t x_slab = 0, dy_slab = 0;      // bytes from a slab to the next
  int64_t slabs = 0, last_vectors = 0;  // of the last slab
  bool accumulate = false;
  // The next slabs, which are prefetched during these: the same rows for each row, and some lines
  // of each slab's activations. 0 slabs: none.
  int64_t next_slabs = 0;
  const char* next_x = nullptr;
  int64_t next_lines = 0;
};

constexpr int64_t kSlabsAtOnce = 2;

// Calls `visit(first, end)` for the outputs of each row of cells in a part's first tile.
template <class Visit>
void for_each_first_outputs(const BlockStream& s, const CsrBlock& part, const Visit& visit) {
  const int64_t rows = s.cell.unit_rows();
  csr_for_each_first_row(s.cells, part, [&](int64_t row) { visit(row * rows, (row + 1) * rows); });
}

// `lanes`: BatchLanes of the rows, or null.
void reference_gradient_block(const BlockStream& s, const CsrBlock& block, const float* dy,
                              const float* x, int64_t batch, bool accumulate, float* gradient,
                              float* lanes) {
  for (int64_t slab = 0; lanes != nullptr && slab < batch; slab += kSlabWidth) {
    for_each_first_outputs(s, block, [&](int64_t first, int64_t end) {
      reference::add_to_lanes(dy + slab * s.rows(), first, end, std::min(kSlabWidth, batch - slab),
                              lanes);
    });
  }
  reference::block_gradient_block(s, block, dy, x, batch, accumulate, gradient);
}

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void gradient_block(const BlockStream& s, const CsrBlock& block, const float* dy, const float* x,
                    int64_t batch, bool accumulate, float* gradient, float* lanes) {
  reference_gradient_block(s, block, dy, x, batch, accumulate, gradient, lanes);
}
#else

#include "lacuna/framework/kernels/blocks/four_sums.inc"

HWY_INLINE void prefetch_rows(const char* rows, int64_t count) {
  for (int64_t line = 0; line < count * kSlabRowBytes; line += 64) __builtin_prefetch(rows + line);
}

// Prefetches the next slabs' part of row i, whose output gradients are at dy.
HWY_INLINE void prefetch_next_slabs(const GradientRun& run, int64_t i, const char* dy,
                                    int64_t rows) {
  for (int64_t slab = 0; slab < run.next_slabs; ++slab) {
    const char* at = dy + (run.slabs + slab) * run.dy_slab;
    for (int64_t line = 0; line < rows * kSlabRowBytes; line += 64)
      __builtin_prefetch(at + line, 0, 2);
    const char* x = run.next_x + slab * run.x_slab + i * run.next_lines * 64;
    for (int64_t line = 0; line < run.next_lines; ++line) __builtin_prefetch(x + line * 64, 0, 2);
  }
}

// Adds the output gradients of a row of cells, at dy, to their partial sums: `whole` vectors of all
// slabs but the last, and `vectors` of the last.
HWY_INLINE void add_rows_to_lanes(const GradientRun& run, int64_t i, const char* dy, int64_t rows,
                                  int64_t slabs, int64_t whole, int64_t vectors) {
  float* lanes = run.lanes + run.rows[i] * rows * BatchLanes::kLanes;
  for (int64_t r = 0; r < rows; ++r, dy += kSlabRowBytes, lanes += BatchLanes::kLanes) {
    Vector sum = hn::Load(Floats(), lanes);
    for (int64_t slab = 0; slab < slabs; ++slab) {
      const auto count = static_cast<int>(slab + 1 == slabs ? vectors : whole);
      for (int v = 0; v < count; ++v) sum = hn::Add(sum, load(dy + slab * run.dy_slab, v));
    }
    hn::Store(sum, Floats(), lanes);
  }
}

// Adds the products of a column's activations with four rows of output gradients, given by `dy(r,
// v)`.
template <int kVectors, class Rows>
HWY_INLINE void add_column(const char* x, const Rows& dy, Vector (&sum)[4]) {
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    const Vector xs = load(x, v);
    HWY_UNROLL(4)
    for (int r = 0; r < 4; ++r) sum[r] = hn::MulAdd(dy(r, v), xs, sum[r]);
  }
}

constexpr int kWhole = kSlabVectors < 8 ? kSlabVectors : 8;  // vectors processed at once

// Four rows of a row of cells over kWhole vectors of the first of two slabs and kVectors of the
// second or, if kSlabs is 1, over kVectors of one slab. With 32 registers, the last slab's output
// gradients stay in registers.
template <int kRows, int kVectors, int kSlabs>
HWY_INLINE void columns_part(const GradientRun& run, const char* dy, const uint16_t* offsets,
                             float* gradient) {
  const char* last = dy + (kSlabs - 1) * run.dy_slab;
  Vector kept[4][kManyRegisters ? kVectors : 1];
  if constexpr (kManyRegisters) {
    HWY_UNROLL(4)
    for (int r = 0; r < 4; ++r) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) kept[r][v] = load(last + r * kSlabRowBytes, v);
    }
  }
  for (int64_t k = 0; k < run.length; ++k, gradient += kRows) {
    const char* x = run.x + offsets[k] * kSlabRowBytes;
    const Vector zero = hn::Zero(Floats());
    Vector sum[4] = {zero, zero, zero, zero};
    if constexpr (kSlabs == 2) {
      add_column<kWhole>(
          x, [dy](int r, int v) HWY_ATTR { return load(dy + r * kSlabRowBytes, v); }, sum);
      x += run.x_slab;
    }
    if constexpr (kManyRegisters) {
      add_column<kVectors>(
          x, [&kept](int r, int v) HWY_ATTR { return kept[r][v]; }, sum);
    } else {
      add_column<kVectors>(
          x, [last](int r, int v) HWY_ATTR { return load(last + r * kSlabRowBytes, v); }, sum);
    }
    put(sums(sum[0], sum[1], sum[2], sum[3]), run.accumulate, gradient);
  }
}

template <int kRows, int kVectors, int kSlabs>
HWY_NOINLINE void columns_gradient(const GradientRun& run) {
  for (int64_t i = 0; i < run.count; ++i) {
    const char* dy = run.dy + run.rows[i] * (kRows * kSlabRowBytes);
    for (int64_t slab = 0; slab < kSlabs; ++slab) {
      prefetch_rows(run.dy + slab * run.dy_slab + run.rows[i + 1] * (kRows * kSlabRowBytes), kRows);
    }
    prefetch_next_slabs(run, i, dy, kRows);
    if (run.lanes != nullptr) add_rows_to_lanes(run, i, dy, kRows, kSlabs, kWhole, kVectors);
    for (int part = 0; part < kRows; part += 4) {
      columns_part<kRows, kVectors, kSlabs>(run, dy + part * kSlabRowBytes,
                                            run.offsets + i * run.length,
                                            run.gradient + i * run.length * kRows + part);
    }
  }
}

// Adds one vector of examples to the products of four rows with kColumns columns.
template <int kColumns>
HWY_INLINE void add_outer(const char* dy, const char* x, int v, Vector (&sum)[kColumns][4]) {
  Vector rows[4];
  HWY_UNROLL(4)
  for (int r = 0; r < 4; ++r) rows[r] = load(dy + r * kSlabRowBytes, v);
  HWY_UNROLL(4)
  for (int c = 0; c < kColumns; ++c) {
    const Vector column = load(x + c * kSlabRowBytes, v);
    HWY_UNROLL(4)
    for (int r = 0; r < 4; ++r) sum[c][r] = hn::MulAdd(rows[r], column, sum[c][r]);
  }
}

// kColumns columns of a 4 × 4 cell over the run's slabs.
template <int kColumns>
HWY_INLINE void block_part(const GradientRun& run, const char* dy, const char* x, float* gradient) {
  Vector sum[kColumns][4];
  HWY_UNROLL(4)
  for (int c = 0; c < kColumns; ++c) {
    HWY_UNROLL(4)
    for (int r = 0; r < 4; ++r) sum[c][r] = hn::Zero(Floats());
  }
  for (int64_t slab = 1; slab < run.slabs; ++slab, dy += run.dy_slab, x += run.x_slab) {
    HWY_UNROLL(4)
    for (int v = 0; v < kSlabVectors; ++v) add_outer<kColumns>(dy, x, v, sum);
  }
  const auto last = static_cast<int>(run.last_vectors);
  for (int v = 0; v < last; ++v) add_outer<kColumns>(dy, x, v, sum);
  HWY_UNROLL(4)
  for (int c = 0; c < kColumns; ++c) {
    put(sums(sum[c][0], sum[c][1], sum[c][2], sum[c][3]), run.accumulate, gradient + 4 * c);
  }
}

#include "lacuna/framework/kernels/blocks/large_block_gradient.inc"

HWY_NOINLINE void blocks_gradient(const GradientRun& run) {
  constexpr int kColumns = kManyRegisters ? 4 : 2;
  for (int64_t i = 0; i < run.count; ++i) {
    const char* dy = run.dy + run.rows[i] * (4 * kSlabRowBytes);
    if (run.lanes != nullptr) {
      add_rows_to_lanes(run, i, dy, 4, run.slabs, kSlabVectors, run.last_vectors);
    }
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    if (run.length > 0 && are_large_blocks(run, i)) {
      for (int r = 0; r < 4; ++r) prefetch_next_slabs(run, i + r, dy + r * 4 * kSlabRowBytes, 4);
      large_blocks_gradient(run, i);
      for (int r = 1; run.lanes != nullptr && r < 4; ++r) {
        const char* row = run.dy + run.rows[i + r] * (4 * kSlabRowBytes);
        add_rows_to_lanes(run, i + r, row, 4, run.slabs, kSlabVectors, run.last_vectors);
      }
      i += 3;
      continue;
    }
#endif
    for (int64_t slab = 0; slab < run.slabs; ++slab) {
      prefetch_rows(run.dy + slab * run.dy_slab + run.rows[i + 1] * (4 * kSlabRowBytes), 4);
    }
    prefetch_next_slabs(run, i, dy, 4);
    const uint16_t* offsets = run.offsets + i * run.length;
    float* gradient = run.gradient + i * run.length * 16;
    for (int64_t k = 0; k < run.length; ++k, gradient += 16) {
      const char* x = run.x + offsets[k] * (4 * kSlabRowBytes);
      for (int c = 0; c < 4; c += kColumns) {
        block_part<kColumns>(run, dy, x + c * kSlabRowBytes, gradient + 4 * c);
      }
    }
  }
}

template <int kRows, int kSlabs>
HWY_INLINE void columns_of(GradientRun run) {
  const int64_t vectors = run.last_vectors;
  if (vectors == 1) return columns_gradient<kRows, 1, kSlabs>(run);
  if (vectors == 2) return columns_gradient<kRows, 2, kSlabs>(run);
  columns_gradient<kRows, kWhole, kSlabs>(run);
}

// Cells of one column. If a slab has more vectors than are processed at once, each slab has its own
// passes.
template <int kRows>
HWY_INLINE void run_columns(GradientRun run) {
  if constexpr (kWhole == kSlabVectors) {
    run.slabs == 2 ? columns_of<kRows, 2>(run) : columns_of<kRows, 1>(run);
  } else {
    const int64_t slabs = run.slabs, last_vectors = run.last_vectors;
    const GradientRun first = run;
    for (int64_t slab = 0; slab < slabs; ++slab) {
      const int64_t vectors = slab + 1 == slabs ? last_vectors : kSlabVectors;
      for (int64_t v = 0; v < vectors; v += kWhole) {
        run.x = first.x + slab * run.x_slab + v * kVectorBytes;
        run.dy = first.dy + slab * run.dy_slab + v * kVectorBytes;
        run.last_vectors = std::min<int64_t>(kWhole, vectors - v);
        columns_of<kRows, 1>(run);
        run.accumulate = true;
      }
    }
  }
}

void run_cells(const PatternShape& cell, const GradientRun& run) {
  if (cell.unit_columns() == 4) return blocks_gradient(run);
  cell.unit_rows() == 4 ? run_columns<4>(run) : run_columns<8>(run);
}

// The rows of a tile over the run's slabs.
HWY_INLINE void run_tile(const BlockStream& s, const CsrBlock& block, const CsrTile& tile,
                         float* gradient, GradientRun run) {
  for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
    const CsrGroup group = block.clipped(s.cells.groups[static_cast<size_t>(g)]);
    if (group.rows == 0) continue;
    run.gradient = gradient + group.first_value * s.cell.unit_size();
    run.rows = s.cells.rows_in_order.data() + group.first_row;
    run.offsets = s.cells.offsets.data() + group.first_value;
    run.count = group.rows;
    run.length = group.length;
    if (run.length > 0 || run.lanes != nullptr) run_cells(s.cell, run);
    run.next_x += run.count * run.next_lines * 64;
  }
}

void gradient_block(const BlockStream& s, const CsrBlock& block, const float* dy, const float* x,
                    int64_t batch, bool accumulate, float* gradient, float* lanes) {
  const int64_t slabs = (batch + kSlabWidth - 1) / kSlabWidth;
  GradientRun run{.x_slab = s.columns() * kSlabRowBytes, .dy_slab = s.rows() * kSlabRowBytes};
  for (int64_t slab = 0; slab < slabs; slab += kSlabsAtOnce) {
    const char* first_x = reinterpret_cast<const char*>(x) + slab * run.x_slab;
    run.slabs = std::min(kSlabsAtOnce, slabs - slab);
    const int64_t last = std::min(kSlabWidth, batch - (slab + run.slabs - 1) * kSlabWidth);
    run.last_vectors = (last + kLanes - 1) / kLanes;
    run.dy = reinterpret_cast<const char*>(dy) + slab * run.dy_slab;
    run.accumulate = accumulate || slab > 0;
    run.next_lines = s.cells.rows == 0 ? 0 : (run.x_slab / 64 + s.cells.rows - 1) / s.cells.rows;
    run.next_x = first_x + run.slabs * run.x_slab + block.first_row * run.next_lines * 64;
    for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
      const CsrTile& tile = s.cells.tiles[static_cast<size_t>(t)];
      run.x = first_x + tile.first_column * s.cell.unit_columns() * kSlabRowBytes;
      run.lanes = tile.first_column == 0 ? lanes : nullptr;  // all rows are in the first tile
      run.next_slabs =
          tile.first_column == 0 ? std::min(kSlabsAtOnce, slabs - slab - run.slabs) : 0;
      run_tile(s, block, tile, gradient, run);
    }
  }
}
#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(gradient_block);

}  // namespace

void block_gradient(const BlockStream& s, const float* dy, const float* x, int64_t batch,
                    Accumulate accumulate, float* gradient) {
  block_gradient(s, dy, x, batch, accumulate, gradient, nullptr);
}

void block_gradient(const BlockStream& s, const float* dy, const float* x, int64_t batch,
                    Accumulate accumulate, float* gradient, float* dy_sums) {
  const bool adds = accumulate == Accumulate::Yes;
  if (batch == 0 && !adds) std::fill_n(gradient, s.nnz(), 0.0f);
  const auto run =
      use_reference_kernels() ? reference_gradient_block : HWY_DYNAMIC_DISPATCH(gradient_block);
  const int64_t parts = csr_gradient_parts(s.cells, s.cell.unit_size() * batch, s.cell.unit_rows());
  BatchLanes sums(dy_sums, s.rows());
  parallel_blocks(static_cast<int64_t>(s.cells.blocks.size()) * parts, [&](int64_t unit) {
    const CsrBlock& block = s.cells.blocks[static_cast<size_t>(unit / parts)];
    const CsrBlock part =
        parts == 1 ? block : csr_part(s.cells, block, unit % parts, parts, CsrCutAt::Groups);
    float* lanes = nullptr;
    for_each_first_outputs(s, part,
                           [&](int64_t first, int64_t end) { lanes = sums.begin(first, end); });
    run(s, part, dy, x, batch, adds, gradient, lanes);
    for_each_first_outputs(s, part, [&](int64_t first, int64_t end) { sums.end(first, end); });
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
