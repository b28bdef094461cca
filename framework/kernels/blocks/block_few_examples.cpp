// The products of cells for batches of a few examples, row-major: see block_products.hpp. The
// lanes are the rows of a cell, whose values are contiguous: the weights are read once for each
// example.
#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/blocks/block_products.hpp"
#include "lacuna/framework/kernels/blocks/block_reference.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/blocks/block_few_examples.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block_rows(const BlockStream& s, const CsrBlock& block, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  reference::block_product_block_rows(s, block, values, x, batch, bias, y);
}
void scatter_tile_rows(const BlockStream& s, int64_t column_tile, const float* values,
                       const float* dy, int64_t batch, const float* bias, float* dx) {
  reference::block_scatter_tile_rows(s, column_tile, values, dy, batch, bias, dx);
}
void gradient_block_rows(const BlockStream& s, const CsrBlock& block, const float* dy,
                         const float* x, int64_t batch, bool accumulate, float* gradient) {
  reference::block_gradient_block_rows(s, block, dy, x, batch, accumulate, gradient);
}
#else

namespace hn = hwy::HWY_NAMESPACE;

using Quad = hn::FixedTag<float, 4>;

// A row of cells in a tile: the places of its values, columns and activations.
struct Segment {
  int64_t row = 0, first = 0, length = 0;  // in cells
  const uint16_t* offsets = nullptr;
};

template <class Body>
HWY_INLINE void for_each_segment(const CsrStream& cells, const CsrTile& tile, const Body& body) {
  for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
    const CsrGroup& group = cells.groups[static_cast<size_t>(g)];
    for (int64_t i = 0; i < group.rows; ++i) {
      const int64_t first = group.first_value + i * group.length;
      body(Segment{.row = cells.rows_in_order[static_cast<size_t>(group.first_row + i)],
                   .first = first,
                   .length = group.length,
                   .offsets = cells.offsets.data() + first});
    }
  }
}

// Calls `four(columns, place)` for four columns of the segment at a time, with the place of the
// first among the segment's columns, and `one(column, place)` for the remaining columns.
template <int kColumns, class Four, class One>
HWY_INLINE void for_each_column(const Segment& segment, const Four& four, const One& one) {
  int64_t k = 0;
  const uint16_t* o = segment.offsets;
  if constexpr (kColumns == 4) {
    for (; k < segment.length; ++k) {
      const int64_t c = int64_t{o[k]} * 4;
      const int64_t columns[4] = {c, c + 1, c + 2, c + 3};
      four(columns, k * 4);
    }
  } else {
    for (; k + 4 <= segment.length; k += 4) {
      const int64_t columns[4] = {o[k], o[k + 1], o[k + 2], o[k + 3]};
      four(columns, k);
    }
    for (; k < segment.length; ++k) one(int64_t{o[k]}, k);
  }
}

// Four independent sums hide the latency of an addition.
template <int kRows, int kColumns>
HWY_INLINE void product_segment(const Segment& segment, const float* values, const float* x,
                                const float* start, float* y) {
  constexpr int kSize = kRows * kColumns;
  const hn::CappedTag<float, kRows> d;
  constexpr int kStep = hn::MaxLanes(d);
  for (int part = 0; part < kRows; part += kStep) {
    const float* w = values + segment.first * kSize + part;
    auto s0 = start == nullptr ? hn::Zero(d) : hn::LoadU(d, start + part);
    auto s1 = hn::Zero(d), s2 = s1, s3 = s1;
    for_each_column<kColumns>(
        segment,
        [&](const int64_t(&c)[4], int64_t place) HWY_ATTR {
          const float* at = w + place * kRows;
          s0 = hn::MulAdd(hn::LoadU(d, at), hn::Set(d, x[c[0]]), s0);
          s1 = hn::MulAdd(hn::LoadU(d, at + kRows), hn::Set(d, x[c[1]]), s1);
          s2 = hn::MulAdd(hn::LoadU(d, at + 2 * kRows), hn::Set(d, x[c[2]]), s2);
          s3 = hn::MulAdd(hn::LoadU(d, at + 3 * kRows), hn::Set(d, x[c[3]]), s3);
        },
        [&](int64_t c, int64_t place)
            HWY_ATTR { s0 = hn::MulAdd(hn::LoadU(d, w + place * kRows), hn::Set(d, x[c]), s0); });
    hn::StoreU(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), d, y + part);
  }
}

// dy · w over the rows of a column, reduced to four lanes.
template <int kRows>
HWY_INLINE hn::Vec<Quad> column_product(const float* w, const float* dy) {
  const Quad d;
  auto sum = hn::Mul(hn::LoadU(d, w), hn::LoadU(d, dy));
  if constexpr (kRows == 8) sum = hn::MulAdd(hn::LoadU(d, w + 4), hn::LoadU(d, dy + 4), sum);
  return sum;
}

template <int kRows, int kColumns>
HWY_INLINE void scatter_segment(const Segment& segment, const float* values, const float* dy,
                                float* dx) {
  const Quad d;
  const hn::Repartition<uint64_t, Quad> u;
  const float* w = values + segment.first * (kRows * kColumns);
  for_each_column<kColumns>(
      segment,
      [&](const int64_t(&c)[4], int64_t place) HWY_ATTR {
        const float* at = w + place * kRows;
        const auto p0 = column_product<kRows>(at, dy), p1 = column_product<kRows>(at + kRows, dy),
                   p2 = column_product<kRows>(at + 2 * kRows, dy),
                   p3 = column_product<kRows>(at + 3 * kRows, dy);
        const auto low =
            hn::BitCast(u, hn::Add(hn::InterleaveLower(d, p0, p1), hn::InterleaveUpper(d, p0, p1)));
        const auto high =
            hn::BitCast(u, hn::Add(hn::InterleaveLower(d, p2, p3), hn::InterleaveUpper(d, p2, p3)));
        const auto sum = hn::Add(hn::BitCast(d, hn::InterleaveLower(u, low, high)),
                                 hn::BitCast(d, hn::InterleaveUpper(u, low, high)));
        if constexpr (kColumns == 4) {
          hn::StoreU(hn::Add(hn::LoadU(d, dx + c[0]), sum), d, dx + c[0]);
        } else {
          dx[c[0]] += hn::GetLane(sum);
          dx[c[1]] += hn::ExtractLane(sum, 1);
          dx[c[2]] += hn::ExtractLane(sum, 2);
          dx[c[3]] += hn::ExtractLane(sum, 3);
        }
      },
      [&](int64_t c, int64_t place) HWY_ATTR {
        dx[c] += hn::GetLane(hn::SumOfLanes(d, column_product<kRows>(w + place * kRows, dy)));
      });
}

// Processes kExamples examples at once, so that the gradient is written once: `dy` and `x` are
// those of the first example; those of the others follow after s.rows() and s.columns() floats.
template <int kRows, int kColumns, int kExamples>
HWY_INLINE void gradient_segment(const BlockStream& s, const Segment& segment, const float* dy,
                                 const float* x, bool accumulate, float* gradient) {
  const hn::CappedTag<float, kRows> d;
  constexpr int kStep = hn::MaxLanes(d);
  const int64_t columns = s.columns();
  for (int part = 0; part < kRows; part += kStep) {
    float* into = gradient + segment.first * (kRows * kColumns) + part;
    hn::Vec<decltype(d)> rows[kExamples];
    HWY_UNROLL(4)
    for (int e = 0; e < kExamples; ++e) rows[e] = hn::LoadU(d, dy + e * s.rows() + part);
    const auto one = [&](int64_t c, int64_t place) HWY_ATTR {
      auto sum = hn::Mul(hn::Set(d, x[c]), rows[0]);
      HWY_UNROLL(4)
      for (int e = 1; e < kExamples; ++e) {
        sum = hn::MulAdd(hn::Set(d, x[e * columns + c]), rows[e], sum);
      }
      float* at = into + place * kRows;
      if (accumulate) sum = hn::Add(sum, hn::LoadU(d, at));
      hn::StoreU(sum, d, at);
    };
    for_each_column<kColumns>(
        segment,
        [&](const int64_t(&c)[4], int64_t place) HWY_ATTR {
          HWY_UNROLL(4)
          for (int i = 0; i < 4; ++i) one(c[i], place + i);
        },
        one);
  }
}

// Calls `body(Cells<rows, columns>)`.
template <int kRows_, int kColumns_>
struct Cells {
  static constexpr int kRows = kRows_, kColumns = kColumns_;
};
template <class Body>
HWY_INLINE void with_cells(const PatternShape& cell, const Body& body) {
  if (cell.unit_columns() == 4) return body(Cells<4, 4>());
  if (cell.unit_rows() == 4) return body(Cells<4, 1>());
  body(Cells<8, 1>());
}

void product_block_rows(const BlockStream& s, const CsrBlock& block, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  with_cells(s.cell, [&]<class C>(C) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      float* out = y + example * s.rows();
      for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
        const CsrTile& tile = s.cells.tiles[static_cast<size_t>(t)];
        const bool is_first = tile.first_column == 0;
        const float* in = x + example * s.columns() + tile.first_column * C::kColumns;
        for_each_segment(s.cells, tile, [&](const Segment& segment) HWY_ATTR {
          float* at = out + segment.row * C::kRows;
          const float* start = !is_first         ? at
                               : bias == nullptr ? nullptr
                                                 : bias + segment.row * C::kRows;
          product_segment<C::kRows, C::kColumns>(segment, values, in, start, at);
        });
      }
    }
  });
}

void scatter_tile_rows(const BlockStream& s, int64_t column_tile, const float* values,
                       const float* dy, int64_t batch, const float* bias, float* dx) {
  const int64_t width = s.cells.tile_columns * s.cell.unit_columns(), first = column_tile * width;
  const uint32_t* begin = s.tile_begin.data() + column_tile;
  with_cells(s.cell, [&]<class C>(C) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      const float* in = dy + example * s.rows();
      float* out = dx + example * s.columns() + first;
      const int64_t columns = std::min(width, s.columns() - first);
      if (bias == nullptr) {
        std::fill_n(out, columns, 0.0f);
      } else {
        std::copy_n(bias + first, columns, out);
      }
      for (uint32_t i = begin[0]; i < begin[1]; ++i) {
        const CsrTile& tile = s.cells.tiles[s.tile_order[i]];
        for_each_segment(s.cells, tile, [&](const Segment& segment) HWY_ATTR {
          scatter_segment<C::kRows, C::kColumns>(segment, values, in + segment.row * C::kRows, out);
        });
      }
    }
  });
}

template <int kExamples>
void gradient_examples(const BlockStream& s, const CsrBlock& block, const float* dy, const float* x,
                       bool accumulate, float* gradient) {
  with_cells(s.cell, [&]<class C>(C) HWY_ATTR {
    for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
      const CsrTile& tile = s.cells.tiles[static_cast<size_t>(t)];
      const float* in = x + tile.first_column * C::kColumns;
      for_each_segment(s.cells, tile, [&](const Segment& segment) HWY_ATTR {
        gradient_segment<C::kRows, C::kColumns, kExamples>(s, segment, dy + segment.row * C::kRows,
                                                           in, accumulate, gradient);
      });
    }
  });
}

void gradient_block_rows(const BlockStream& s, const CsrBlock& block, const float* dy,
                         const float* x, int64_t batch, bool accumulate, float* gradient) {
  while (batch > 0) {
    if (batch >= 4) {
      gradient_examples<4>(s, block, dy, x, accumulate, gradient);
    } else if (batch >= 2) {
      gradient_examples<2>(s, block, dy, x, accumulate, gradient);
    } else {
      gradient_examples<1>(s, block, dy, x, accumulate, gradient);
    }
    const int64_t done = batch >= 4 ? 4 : batch >= 2 ? 2 : 1;
    batch -= done;
    dy += done * s.rows();
    x += done * s.columns();
    accumulate = true;
  }
}
#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block_rows);
HWY_EXPORT(scatter_tile_rows);
HWY_EXPORT(gradient_block_rows);

}  // namespace

void block_product_row_major(const BlockStream& s, const float* values, const float* x,
                             int64_t batch, const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::block_product_block_rows
                                           : HWY_DYNAMIC_DISPATCH(product_block_rows);
  parallel_blocks(static_cast<int64_t>(s.cells.blocks.size()), [&](int64_t block) {
    run(s, s.cells.blocks[static_cast<size_t>(block)], values, x, batch, bias, y);
  });
}

void block_input_gradient_row_major(const BlockStream& s, const float* values, const float* dy,
                                    int64_t batch, const float* bias, float* dx) {
  const auto run = use_reference_kernels() ? reference::block_scatter_tile_rows
                                           : HWY_DYNAMIC_DISPATCH(scatter_tile_rows);
  parallel_blocks(static_cast<int64_t>(s.tile_begin.size()) - 1,
                  [&](int64_t tile) { run(s, tile, values, dy, batch, bias, dx); });
}

void block_gradient_row_major(const BlockStream& s, const float* dy, const float* x, int64_t batch,
                              Accumulate accumulate, float* gradient) {
  const bool adds = accumulate == Accumulate::Yes;
  if (batch == 0 && !adds) std::fill_n(gradient, s.nnz(), 0.0f);
  const auto run = use_reference_kernels() ? reference::block_gradient_block_rows
                                           : HWY_DYNAMIC_DISPATCH(gradient_block_rows);
  parallel_blocks(static_cast<int64_t>(s.cells.blocks.size()), [&](int64_t block) {
    run(s, s.cells.blocks[static_cast<size_t>(block)], dy, x, batch, adds, gradient);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
