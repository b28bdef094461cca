// The forward product and the input gradient of cells over batch slabs.
//
// Sums over a whole row of a tile stay in registers: kRows outputs × kVectors vectors of examples,
// 16 sums with 32 registers (four outputs × four vectors, 3 to 5 % faster than eight × two on AMD
// Zen 4), 8 with 16. A vector of activations is loaded once and multiplied with kRows weights, each
// spread to all lanes by its load: one load per two multiply-adds. Several passes over a row's
// cells cover the slab's 64 examples and the cell's rows; the weights are then in the first-level
// cache.
//
// The input gradient of 4 × 4 cells is the forward loop over the transposed cells, which reads the
// weights in place; that of other cells is a scatter (block_scatter.cpp).
#include "lacuna/framework/kernels/blocks/block_products.hpp"

#include <algorithm>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/blocks/block_reference.hpp"
#include "lacuna/framework/kernels/blocks/cell_rows.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/blocks/block_products.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/blocks/block_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block(const BlockStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool) {
  reference::block_product_block(s, block, values, x, width, bias, y, false);
}
void transposed_block(const PatternShape& cell, const BlockTransposed& transposed,
                      const CsrBlock& block, const float* values, const float* dy, int64_t width,
                      float* dx, bool) {
  reference::block_transposed_block(cell, transposed, block, values, dy, width, dx, false);
}
#else

// How a product reads a cell: kOut outputs, kIn inputs, and the places of the values.
template <int kRows, int kColumns>
struct Forward {
  static constexpr int kOut = kRows, kIn = kColumns, kOutStride = 1, kInStride = kRows;
  static constexpr bool kIsSourced = false;
};
template <int kRows, int kColumns>
struct Transposed {
  static constexpr int kOut = kColumns, kIn = kRows, kOutStride = kRows, kInStride = 1;
  static constexpr bool kIsSourced = true;
};

// The sums of kRows outputs and kVectors vectors of examples over the cells of a row.
template <class Form, int kRows, int kVectors>
HWY_INLINE void product_part(const Run& run, const char* x, const float* bias, const float* values,
                             const uint16_t* offsets, const uint32_t* source, char* y) {
  constexpr int kSize = Form::kOut * Form::kIn;
  Vector acc[kRows][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = !run.is_first     ? load(y + r * kSlabRowBytes, v)
                  : bias == nullptr ? hn::Zero(Floats())
                                    : hn::Set(Floats(), bias[r]);
    }
  }
  for (int64_t k = 0; k < run.length; ++k) {
    const float* w = values + (Form::kIsSourced ? int64_t{source[k]} : k) * kSize;
    if constexpr (Form::kIsSourced) {
      __builtin_prefetch(values + source[k + BlockTransposed::kAhead] * kSize);
    }
    const char* in = x + offsets[k] * (Form::kIn * kSlabRowBytes);
    HWY_UNROLL(8)
    for (int i = 0; i < Form::kIn; ++i) {
      Vector xs[kVectors];
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) xs[v] = load(in + i * kSlabRowBytes, v);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        const Vector value = hn::Set(Floats(), w[i * Form::kInStride + r * Form::kOutStride]);
        HWY_UNROLL(8)
        for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(value, xs[v], acc[r][v]);
      }
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) store(acc[r][v], y + r * kSlabRowBytes, v);
  }
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

// Outputs [kFirst, kFirst + kRows) of the sixteen of four rows of 4 × 4 cells with the same
// columns: with more outputs at once than one cell has, fewer loads serve as many multiply-adds.
template <class Form, int kFirst, int kRows>
HWY_INLINE void large_part(const Run& run, const float* bias, const float* values,
                           const uint16_t* offsets, const uint32_t* source, char* y) {
  constexpr int kVectors = 4, kFirstCell = kFirst / 4, kEndCell = (kFirst + kRows + 3) / 4;
  Vector acc[kRows][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = !run.is_first     ? load(y + (kFirst + r) * kSlabRowBytes, v)
                  : bias == nullptr ? hn::Zero(Floats())
                                    : hn::Set(Floats(), bias[kFirst + r]);
    }
  }
  for (int64_t k = 0; k < run.length; ++k) {
    const float* cells[kEndCell - kFirstCell];
    for (int cell = kFirstCell; cell < kEndCell; ++cell) {
      const int64_t at = cell * run.length + k;
      cells[cell - kFirstCell] = values + (Form::kIsSourced ? int64_t{source[at]} : at) * 16;
    }
    const char* in = run.x + offsets[k] * (4 * kSlabRowBytes);
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      Vector xs[kVectors];
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) xs[v] = load(in + i * kSlabRowBytes, v);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        const int row = kFirst + r;
        const float* w = cells[row / 4 - kFirstCell];
        const Vector value = hn::Set(Floats(), w[i * Form::kInStride + row % 4 * Form::kOutStride]);
        HWY_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(value, xs[v], acc[r][v]);
      }
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) store(acc[r][v], y + (kFirst + r) * kSlabRowBytes, v);
  }
}

// Processes four rows of cells from row i on.
template <class Form>
HWY_INLINE void large_product(const Run& run, int64_t i) {
  const int64_t row = run.rows[i] * 4, first = i * run.length;
  char* y = run.y + row * kSlabRowBytes;
  const float* bias = run.bias == nullptr ? nullptr : run.bias + row;
  const float* values = Form::kIsSourced ? run.values : run.values + first * 16;
  const uint16_t* offsets = run.offsets + first;
  const uint32_t* source = Form::kIsSourced ? run.source + first : nullptr;
  large_part<Form, 0, 6>(run, bias, values, offsets, source, y);
  large_part<Form, 6, 5>(run, bias, values, offsets, source, y);
  large_part<Form, 11, 5>(run, bias, values, offsets, source, y);
}

#endif

template <class Form, int kRows, int kVectors>
HWY_NOINLINE void product_rows(const Run& run) {
  constexpr int kSize = Form::kOut * Form::kIn;
  for (int64_t i = 0; i < run.count; ++i) {
    const int64_t row = run.rows[i] * Form::kOut, first = i * run.length;
    char* y = run.y + row * kSlabRowBytes;
    const char* ahead = run.y + run.rows[i + 1] * (Form::kOut * kSlabRowBytes);
    for (int64_t line = 0; line < Form::kOut * kSlabRowBytes; line += 64) {
      __builtin_prefetch(ahead + line, 1);
    }
    prefetch_next_slab(run, i, y, Form::kOut * kSlabRowBytes);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    if constexpr (Form::kOut == 4 && Form::kIn == 4 && kVectors == 4) {
      if (share_columns(run, i, 4)) {
        for (int64_t line = 4 * kSlabRowBytes; line < 16 * kSlabRowBytes; line += 64) {
          __builtin_prefetch(y + line, 1);
        }
        for (int r = 1; r < 4; ++r) {
          prefetch_next_slab(run, i + r, y + r * 4 * kSlabRowBytes, 4 * kSlabRowBytes);
        }
        large_product<Form>(run, i);
        i += 3;
        continue;
      }
    }
#endif
    const float* values = Form::kIsSourced ? run.values : run.values + first * kSize;
    const uint32_t* source = Form::kIsSourced ? run.source + first : nullptr;
    for (int64_t pass = 0; pass < run.passes; ++pass) {
      const int64_t at = pass * kVectors * kVectorBytes;
      for (int part = 0; part < Form::kOut; part += kRows) {
        product_part<Form, kRows, kVectors>(run, run.x + at,
                                            run.bias == nullptr ? nullptr : run.bias + row + part,
                                            values + part * Form::kOutStride, run.offsets + first,
                                            source, y + part * kSlabRowBytes + at);
      }
    }
  }
}

// The outputs of a cell processed at once with this number of vectors of examples.
constexpr int product_part_rows(int rows, int vectors) {
  return kManyRegisters && vectors <= 2 ? rows : 4;
}

template <class Form>
void product_tiles(const CsrStream& cells, const CsrBlock& block, const uint32_t* source,
                   const float* values, const float* x, int64_t width, const float* bias, float* y,
                   bool prefetch_next) {
  Run run{.y = reinterpret_cast<char*>(y), .bias = bias, .values = values};
  const RunFunction function =
      with_vectors<kMostVectors>(width, run, []<int n>(Vectors<n>) HWY_ATTR {
        return RunFunction(product_rows<Form, product_part_rows(Form::kOut, n), n>);
      });
  for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
    const CsrTile& tile = cells.tiles[static_cast<size_t>(t)];
    run.x = reinterpret_cast<const char*>(x) + tile.first_column * (Form::kIn * kSlabRowBytes);
    run.is_first = tile.first_column == 0;
    run.next_row = 0;
    run.shared_lines = 0;
    if (run.is_first && prefetch_next) {
      const int64_t x_bytes = cells.columns * (Form::kIn * kSlabRowBytes);
      run.next_row = cells.rows * (Form::kOut * kSlabRowBytes);
      run.shared_lines = lines_for_each(x_bytes, cells.rows);
      run.shared =
          reinterpret_cast<const char*>(x) + x_bytes + block.first_row * run.shared_lines * 64;
    }
    for_each_run(cells, tile, run, [&](int64_t first) HWY_ATTR {
      if constexpr (Form::kIsSourced) {
        run.source = source + first;
      } else {
        run.values = values + first * (Form::kIn * Form::kOut);
      }
      function(run);
    });
  }
}

void product_block(const BlockStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool prefetch_next) {
  if (s.cell.unit_columns() == 4) {
    product_tiles<Forward<4, 4> >(s.cells, block, nullptr, values, x, width, bias, y,
                                  prefetch_next);
  } else if (s.cell.unit_rows() == 4) {
    product_tiles<Forward<4, 1> >(s.cells, block, nullptr, values, x, width, bias, y,
                                  prefetch_next);
  } else {
    product_tiles<Forward<8, 1> >(s.cells, block, nullptr, values, x, width, bias, y,
                                  prefetch_next);
  }
}

void transposed_block(const PatternShape&, const BlockTransposed& transposed, const CsrBlock& block,
                      const float* values, const float* dy, int64_t width, float* dx,
                      bool prefetch_next) {
  product_tiles<Transposed<4, 4> >(transposed.cells, block, transposed.source.data(), values, dy,
                                   width, nullptr, dx, prefetch_next);
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block);
HWY_EXPORT(transposed_block);

}  // namespace

void block_product(const BlockStream& s, const float* values, const float* x, int64_t batch,
                   const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::block_product_block
                                           : HWY_DYNAMIC_DISPATCH(product_block);
  const auto parts = static_cast<int64_t>(s.cells.blocks.size());
  for_each_slab_part(batch, parts, [&](int64_t slab, int64_t part, int64_t width, bool has_next) {
    run(s, s.cells.blocks[static_cast<size_t>(part)], values, x + slab * s.columns() * kSlabWidth,
        width, bias, y + slab * s.rows() * kSlabWidth, has_next);
  });
}

void block_input_gradient(const BlockStream& s, const BlockTransposed& transposed,
                          const float* values, const float* dy, int64_t batch, float* dx) {
  const auto run = use_reference_kernels() ? reference::block_transposed_block
                                           : HWY_DYNAMIC_DISPATCH(transposed_block);
  const std::vector<CsrBlock>& blocks = transposed.cells.blocks;
  const auto parts = static_cast<int64_t>(blocks.size());
  for_each_slab_part(batch, parts, [&](int64_t slab, int64_t part, int64_t width, bool has_next) {
    run(s.cell, transposed, blocks[static_cast<size_t>(part)], values,
        dy + slab * s.rows() * kSlabWidth, width, dx + slab * s.columns() * kSlabWidth, has_next);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
