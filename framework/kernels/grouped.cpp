// The forward product and the input gradient of cells over batch slabs.
//
// Sums over a whole row of a tile stay in registers: kRows outputs × kVectors vectors of examples,
// 16 of them where there are 32 registers (four outputs × four vectors, 3 to 5 % faster than eight
// × two on AMD Zen 4), 8 where there are 16. A vector of activations is loaded once and multiplied
// with kRows weights, each spread to all lanes by its load: a load for two multiply-adds. Several
// passes over a row's cells cover the slab's 64 examples and the cell's rows; the weights then are
// in the first-level cache.
//
// 4 × 4 cells have their input gradient by the forward loop over the transposed cells, with the
// weights read where they lie. Cells of one column are scattered: the output gradients of a row of
// cells stay in registers, and each column of the tile is loaded, added to and stored. That needs
// no transposed index, and its stores are one for eight (four) multiply-adds.
#include "lacuna/framework/kernels/grouped.h"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/grouped_reference.h"
#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/grouped.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd_loop.inc"

#ifndef LACUNA_GROUPED_RUN
#define LACUNA_GROUPED_RUN
namespace lacuna {
namespace {

// Rows of cells of one length in one tile of one slab.
struct Run {
  const char* x = nullptr;           // the tile's first row of the slab: what is read
  char* y = nullptr;                 // the slab: what is written (or, in a scatter, read)
  const float* bias = nullptr;       // by output, or null
  const float* values = nullptr;     // of the first cell; where there is a source, of all cells
  const uint32_t* source = nullptr;  // of each cell, the place of its values; null: in turn
  const uint32_t* rows = nullptr;
  const uint16_t* offsets = nullptr;
  int64_t count = 0;   // rows
  int64_t length = 0;  // cells of each
  int64_t passes = 0;  // over the slab's examples
  bool is_first = true;
  // Of the next slab, asked for while this one is worked on: with each row the same row (so many
  // bytes on; 0: none), and some lines of what the rows share.
  int64_t next_row = 0;
  const char* shared = nullptr;
  int64_t shared_lines = 0;
};

constexpr int64_t kRowBytes = kSlabWidth * static_cast<int64_t>(sizeof(float));

// For `rows` rows of cells that have all lines of `bytes` bytes between them.
inline int64_t lines_for_each(int64_t bytes, int64_t rows) {
  return (bytes / 64 + rows - 1) / rows;
}

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block(const GroupedStream& s, const CsrBlock& block, const float* values,
                   const float* x, int64_t width, const float* bias, float* y, bool) {
  reference::grouped_product_block(s, block, values, x, width, bias, y, false);
}
void transposed_block(const CellShape& cell, const GroupedTransposed& transposed,
                      const CsrBlock& block, const float* values, const float* dy, int64_t width,
                      float* dx, bool) {
  reference::grouped_transposed_block(cell, transposed, block, values, dy, width, dx, false);
}
void scatter_tile(const GroupedStream& s, int64_t column_tile, const float* values, const float* dy,
                  int64_t width, const float* bias, float* dx, bool) {
  reference::grouped_scatter_tile(s, column_tile, values, dy, width, bias, dx, false);
}
#else

constexpr int kLanes = hn::MaxLanes(Floats());
constexpr int kVectorBytes = kLanes * static_cast<int>(sizeof(float));
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;

HWY_INLINE Vector load(const char* at, int vector) {
  return hn::Load(Floats(), reinterpret_cast<const float*>(at + vector * kVectorBytes));
}
HWY_INLINE void store(Vector value, char* at, int vector) {
  hn::Store(value, Floats(), reinterpret_cast<float*>(at + vector * kVectorBytes));
}

// How a product reads the cells: kOut outputs of each, kIn inputs, and where their values lie.
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
      acc[r][v] = !run.is_first     ? load(y + r * kRowBytes, v)
                  : bias == nullptr ? hn::Zero(Floats())
                                    : hn::Set(Floats(), bias[r]);
    }
  }
  for (int64_t k = 0; k < run.length; ++k) {
    const float* w = values + (Form::kIsSourced ? int64_t{source[k]} : k) * kSize;
    if constexpr (Form::kIsSourced) {
      __builtin_prefetch(values + source[k + GroupedTransposed::kAhead] * kSize);
    }
    const char* in = x + offsets[k] * (Form::kIn * kRowBytes);
    HWY_UNROLL(8)
    for (int i = 0; i < Form::kIn; ++i) {
      Vector xs[kVectors];
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) xs[v] = load(in + i * kRowBytes, v);
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
    for (int v = 0; v < kVectors; ++v) store(acc[r][v], y + r * kRowBytes, v);
  }
}

// Asks for what the next slab's part of row i needs.
HWY_INLINE void prefetch_next_slab(const Run& run, int64_t i, const char* row, int64_t row_bytes) {
  if (run.next_row == 0) return;
  for (int64_t line = 0; line < row_bytes; line += 64) {
    __builtin_prefetch(row + run.next_row + line, 0, 2);
  }
  const char* shared = run.shared + i * run.shared_lines * 64;
  for (int64_t line = 0; line < run.shared_lines; ++line) {
    __builtin_prefetch(shared + line * 64, 0, 2);
  }
}

template <class Form, int kRows, int kVectors>
HWY_NOINLINE void product_rows(const Run& run) {
  constexpr int kSize = Form::kOut * Form::kIn;
  for (int64_t i = 0; i < run.count; ++i) {
    const int64_t row = run.rows[i] * Form::kOut, first = i * run.length;
    char* y = run.y + row * kRowBytes;
    const char* ahead = run.y + run.rows[i + 1] * (Form::kOut * kRowBytes);
    for (int64_t line = 0; line < Form::kOut * kRowBytes; line += 64) {
      __builtin_prefetch(ahead + line, 1);
    }
    prefetch_next_slab(run, i, y, Form::kOut * kRowBytes);
    const float* values = Form::kIsSourced ? run.values : run.values + first * kSize;
    const uint32_t* source = Form::kIsSourced ? run.source + first : nullptr;
    for (int64_t pass = 0; pass < run.passes; ++pass) {
      const int64_t at = pass * kVectors * kVectorBytes;
      for (int part = 0; part < Form::kOut; part += kRows) {
        product_part<Form, kRows, kVectors>(run, run.x + at,
                                            run.bias == nullptr ? nullptr : run.bias + row + part,
                                            values + part * Form::kOutStride, run.offsets + first,
                                            source, y + part * kRowBytes + at);
      }
    }
  }
}

// dX of each column += Σ of kPart of kRows weights times the rows' output gradients, in registers.
template <int kRows, int kPart, int kVectors>
HWY_INLINE void scatter_part(const Run& run, const float* values, const uint16_t* offsets,
                             const char* dy, char* dx) {
  Vector in[kPart][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kPart; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) in[r][v] = load(dy + r * kRowBytes, v);
  }
  for (int64_t k = 0; k < run.length; ++k, values += kRows) {
    char* out = dx + offsets[k] * kRowBytes;
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
    const char* dy = run.x + run.rows[i] * (kRows * kRowBytes);
    const char* ahead = run.x + run.rows[i + 1] * (kRows * kRowBytes);
    for (int64_t line = 0; line < kRows * kRowBytes; line += 64) __builtin_prefetch(ahead + line);
    prefetch_next_slab(run, i, dy, kRows * kRowBytes);
    for (int64_t pass = 0; pass < run.passes; ++pass) {
      const int64_t at = pass * kVectors * kVectorBytes;
      for (int part = 0; part < kRows; part += kPart) {
        scatter_part<kRows, kPart, kVectors>(run, run.values + first * kRows + part,
                                             run.offsets + first, dy + part * kRowBytes + at,
                                             run.y + at);
      }
    }
  }
}

using RunFunction = void (*)(const Run&);

// The rows of a cell taken at once for so many vectors of examples. A forward product has 16 sums
// with 32 registers, and eight with 16; a scatter as many output gradients.
constexpr int kMostVectors = kManyRegisters ? 4 : 2;
constexpr int product_part_rows(int rows, int vectors) {
  return kManyRegisters && vectors <= 2 ? rows : 4;
}

// `choose(Vectors<n>)` gives the function for n vectors at a time; sets the passes that cover the
// examples. Few examples take fewer vectors, as far as that saves work.
template <int n>
struct Vectors {};
template <int kMost, class Choose>
HWY_INLINE RunFunction with_vectors(int64_t width, Run& run, const Choose& choose) {
  const int64_t vectors = (width + kLanes - 1) / kLanes;
  run.passes = 1;
  if (kMost > 1 && vectors == 1) return choose(Vectors<1>());
  if (kMost > 2 && vectors == 2) return choose(Vectors<2>());
  run.passes = (vectors + kMost - 1) / kMost;
  return choose(Vectors<kMost>());
}

// Calls `body(run, first cell)` for the rows of each length in a tile.
template <class Body>
HWY_INLINE void for_each_run(const CsrStream& cells, const CsrTile& tile, Run& run,
                             const Body& body) {
  for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
    const CsrGroup& group = cells.groups[static_cast<size_t>(g)];
    run.rows = cells.rows_in_order.data() + group.first_row;
    run.offsets = cells.offsets.data() + group.first_value;
    run.count = group.rows;
    run.length = group.length;
    body(group.first_value);
    run.shared += run.count * run.shared_lines * 64;
  }
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
    run.x = reinterpret_cast<const char*>(x) + tile.first_column * (Form::kIn * kRowBytes);
    run.is_first = tile.first_column == 0;
    run.next_row = run.is_first && prefetch_next ? cells.rows * (Form::kOut * kRowBytes) : 0;
    if (run.next_row != 0) {
      const int64_t x_bytes = cells.columns * (Form::kIn * kRowBytes);
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

void product_block(const GroupedStream& s, const CsrBlock& block, const float* values,
                   const float* x, int64_t width, const float* bias, float* y, bool prefetch_next) {
  if (s.cell == CellShape{4, 4}) {
    product_tiles<Forward<4, 4> >(s.cells, block, nullptr, values, x, width, bias, y,
                                  prefetch_next);
  } else if (s.cell.rows == 4) {
    product_tiles<Forward<4, 1> >(s.cells, block, nullptr, values, x, width, bias, y,
                                  prefetch_next);
  } else {
    product_tiles<Forward<8, 1> >(s.cells, block, nullptr, values, x, width, bias, y,
                                  prefetch_next);
  }
}

void transposed_block(const CellShape&, const GroupedTransposed& transposed, const CsrBlock& block,
                      const float* values, const float* dy, int64_t width, float* dx,
                      bool prefetch_next) {
  product_tiles<Transposed<4, 4> >(transposed.cells, block, transposed.source.data(), values, dy,
                                   width, nullptr, dx, prefetch_next);
}

void scatter_tile(const GroupedStream& s, int64_t column_tile, const float* values, const float* dy,
                  int64_t width, const float* bias, float* dx, bool prefetch_next) {
  const int64_t first = column_tile * s.cells.tile_columns;
  const int64_t columns = std::min(s.cells.tile_columns, s.cells.columns - first);
  Run run{.x = reinterpret_cast<const char*>(dy),
          .y = reinterpret_cast<char*>(dx + first * kSlabWidth)};
  constexpr int kPart = kManyRegisters ? 8 : 4;
  const RunFunction function =
      s.cell.rows == 8
          ? with_vectors<2>(width, run,
                            []<int n>(Vectors<n>)
                                HWY_ATTR { return RunFunction(scatter_rows<8, kPart, n>); })
          : with_vectors<kMostVectors>(width, run, []<int n>(Vectors<n>) HWY_ATTR {
              return RunFunction(scatter_rows<4, 4, n>);
            });
  if (prefetch_next) {  // the first tile asks for the output gradients, each for its own columns
    run.next_row = column_tile == 0 ? s.rows() * kRowBytes : kRowBytes;
    run.shared = run.y + s.columns() * kRowBytes;
    run.shared_lines = lines_for_each(columns * kRowBytes, s.cells.rows);
  }
  float* out = dx + first * kSlabWidth;
  std::fill_n(out, columns * kSlabWidth, 0.0f);
  for (int64_t c = 0; bias != nullptr && c < columns; ++c) {
    std::fill_n(out + c * kSlabWidth, width, bias[first + c]);
  }
  for (uint32_t i = s.tile_begin[static_cast<size_t>(column_tile)];
       i < s.tile_begin[static_cast<size_t>(column_tile) + 1]; ++i) {
    for_each_run(s.cells, s.cells.tiles[s.tile_order[i]], run, [&](int64_t cell) HWY_ATTR {
      run.values = values + cell * s.cell.rows;
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

HWY_EXPORT(product_block);
HWY_EXPORT(transposed_block);
HWY_EXPORT(scatter_tile);

bool is_before_last(int64_t slab, int64_t batch) { return (slab + 1) * kSlabWidth < batch; }

// Calls `body(slab, part, examples)` for each part of each slab.
template <class Body>
void for_each_part(int64_t batch, size_t part_count, const Body& body) {
  const auto parts = static_cast<int64_t>(part_count);
  parallel_blocks((batch + kSlabWidth - 1) / kSlabWidth * parts, [&](int64_t unit) {
    const int64_t slab = unit / parts;
    body(slab, static_cast<size_t>(unit % parts), std::min(kSlabWidth, batch - slab * kSlabWidth));
  });
}

}  // namespace

void grouped_product(const GroupedStream& s, const float* values, const float* x, int64_t batch,
                     const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::grouped_product_block
                                           : HWY_DYNAMIC_DISPATCH(product_block);
  for_each_part(batch, s.cells.blocks.size(), [&](int64_t slab, size_t part, int64_t width) {
    run(s, s.cells.blocks[part], values, x + slab * s.columns() * kSlabWidth, width, bias,
        y + slab * s.rows() * kSlabWidth, is_before_last(slab, batch));
  });
}

void grouped_input_gradient(const GroupedStream& s, const float* values, const float* dy,
                            int64_t batch, const float* bias, float* dx) {
  const auto run = use_reference_kernels() ? reference::grouped_scatter_tile
                                           : HWY_DYNAMIC_DISPATCH(scatter_tile);
  for_each_part(batch, s.tile_begin.size() - 1, [&](int64_t slab, size_t part, int64_t width) {
    run(s, static_cast<int64_t>(part), values, dy + slab * s.rows() * kSlabWidth, width, bias,
        dx + slab * s.columns() * kSlabWidth, is_before_last(slab, batch));
  });
}

void grouped_input_gradient(const GroupedStream& s, const GroupedTransposed& transposed,
                            const float* values, const float* dy, int64_t batch, float* dx) {
  const auto run = use_reference_kernels() ? reference::grouped_transposed_block
                                           : HWY_DYNAMIC_DISPATCH(transposed_block);
  const std::vector<CsrBlock>& blocks = transposed.cells.blocks;
  for_each_part(batch, blocks.size(), [&](int64_t slab, size_t part, int64_t width) {
    run(s.cell, transposed, blocks[part], values, dy + slab * s.rows() * kSlabWidth, width,
        dx + slab * s.columns() * kSlabWidth, is_before_last(slab, batch));
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
