// Sparse matrices as streams, which hold the nonzeros in the order in which the kernels read them,
// and the three products of training.
//
// A stream cuts the rows into blocks (units of work for a thread) and the columns into tiles, so
// that the part of the activations that a tile reads stays in the first-level cache. Within a tile
// of a block, rows are sorted by their number of nonzeros: loops of equal length follow each other,
// which the processor predicts. If rows have many nonzeros in a tile, two rows with equal numbers
// that share columns are paired, the shared columns first, so that each load of activations there
// serves both. Values, gradient and optimizer states are in stream order, nnz long, without
// padding.
//
// Activations lie in batch slabs, [batch/64][features][64]: every nonzero is one broadcast and
// contiguous multiply-adds in all three products.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/array.h"

namespace lacuna {

/// Rows of one tile that have the same number of nonzeros in it.
struct CsrGroup {
  int64_t first_row = 0;    ///< in CsrStream::rows_in_order
  int64_t first_value = 0;  ///< of the group's first row; the rows are consecutive
  int32_t rows = 0;
  int32_t length = 0;  ///< nonzeros of each row
  /// In each pair of rows, this number of first nonzeros, a multiple of four, are in the same
  /// columns. The shared columns ascend, then the others. 0: rows are not paired, and each row's
  /// columns ascend.
  int32_t shared = 0;
};

/// The columns [first_column, first_column + CsrStream::tile_columns) of a block.
struct CsrTile {
  int64_t first_column = 0;
  int64_t first_group = 0, end_group = 0;
};

/// Consecutive rows. The first tile has all of them, rows without a nonzero included.
struct CsrBlock {
  int64_t first_row = 0, end_row = 0;
  int64_t first_tile = 0, end_tile = 0;
  /// Of CsrStream::rows_in_order: a part of a block (csr_part) has these entries of its tiles
  /// alone.
  int64_t first_entry = 0, end_entry = std::numeric_limits<int64_t>::max();

  bool is_part() const { return first_entry > 0 || end_entry < CsrBlock().end_entry; }
  /// The group's rows that are in the block; of a part perhaps none.
  CsrGroup clipped(CsrGroup group) const {
    const auto rows = int64_t{group.rows};
    const int64_t first = std::clamp<int64_t>(first_entry - group.first_row, 0, rows);
    const int64_t end = std::clamp(end_entry - group.first_row, first, rows);
    group.first_row += first;
    group.first_value += first * group.length;
    group.rows = static_cast<int32_t>(end - first);
    return group;
  }
};

struct CsrStream {
  int64_t rows = 0, columns = 0, nnz = 0;
  int64_t tile_columns = 0;
  std::vector<CsrBlock> blocks = {};
  std::vector<CsrTile> tiles = {};
  std::vector<CsrGroup> groups = {};
  std::vector<uint32_t> rows_in_order = {};  ///< of each group; eight more at the end, to prefetch
  Array<uint16_t> offsets = {};  ///< column − first_column by nonzero; four more at the end

  int64_t bytes() const;
};

/// Builds the stream of a matrix. Row r has nonzeros in columns[row_begin[r]] …
/// columns[row_begin[r+1] − 1], ascending. *Cost:* O(nnz + rows + blocks · tiles). *Requires* rows
/// < 2³².
CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of);

/// How a stream is cut, for kernels outside of this file that read it.
struct CsrCut {
  int64_t tile_columns = 1 << 16;  ///< at least 1, at most 2¹⁶
  int64_t rows_in_block = 512;     ///< at least; blocks have about equal numbers of nonzeros
  int64_t nonzeros_in_block = 1 << 14;
};
CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of, const CsrCut& cut);

/// How many parts a gradient at the nonzeros is to be cut into in each block, where the blocks
/// alone are too few for the threads: each part has work for some 25 µs at least, and enough rows
/// for what it reads. `multiplied`: multiplications of each nonzero; `rows_of_entry`: outputs of
/// each row of the stream. Each value is computed by one part whole, so that numbers do not depend
/// on the parts, which may follow the threads therefore.
int64_t csr_gradient_parts(const CsrStream& stream, int64_t multiplied, int64_t rows_of_entry = 1);
/// Where a block may be cut: between rows, of which pairs stay together, or between groups alone.
enum class CsrCutAt { Rows, Groups };
/// Part `part` of so many with about as many nonzeros each: some of the block's tiles, of which the
/// first and the last perhaps in part; or nothing.
CsrBlock csr_part(const CsrStream& stream, const CsrBlock& block, int64_t part, int64_t parts,
                  CsrCutAt cut_at);

/// For each value in stream order, its place among the nonzeros in row-major order. *Cost:* O(nnz).
Array<uint32_t> csr_canonical_places(const CsrStream& stream, std::span<const int64_t> row_begin);

/// The place of each row's first nonzero in row-major order; rows + 1 entries.
std::vector<int64_t> csr_row_begins(const CsrStream& stream);

/// The stream of the transposed matrix.
struct CsrTransposed {
  CsrStream stream = {};
  Array<uint32_t> source = {};  ///< for each of its values, the place in the original stream

  int64_t bytes() const {
    return stream.bytes() + static_cast<int64_t>(source.size() * sizeof(uint32_t));
  }
};

/// *Cost:* O(nnz + rows + columns) time; 6 bytes per nonzero of the result, and at most 20 more
/// temporarily.
CsrTransposed csr_transposed(const CsrStream& stream);

/// The rows whose segment in the first column's tile, which all rows have, is in the part of a
/// block.
template <class Visit>
void csr_for_each_first_row(const CsrStream& stream, const CsrBlock& part, const Visit& visit) {
  if (part.first_tile == part.end_tile) return;
  const CsrTile& tile = stream.tiles[static_cast<size_t>(part.first_tile)];
  if (tile.first_column > 0) return;
  for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
    const CsrGroup group = part.clipped(stream.groups[static_cast<size_t>(g)]);
    for (int64_t i = group.first_row; i < group.first_row + group.rows; ++i) {
      visit(static_cast<int64_t>(stream.rows_in_order[static_cast<size_t>(i)]));
    }
  }
}

/// The row of each stored row segment of a tile in turn: `visit(row, first_value, first_column,
/// length)`.
template <class Visit>
void csr_for_each_segment(const CsrStream& stream, const CsrTile& tile, Visit&& visit) {
  for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
    const CsrGroup& group = stream.groups[static_cast<size_t>(g)];
    for (int64_t i = 0; i < group.rows; ++i) {
      visit(static_cast<int64_t>(stream.rows_in_order[static_cast<size_t>(group.first_row + i)]),
            group.first_value + i * group.length, tile.first_column,
            static_cast<int64_t>(group.length));
    }
  }
}
/// Visits the segments of all tiles.
template <class Visit>
void csr_for_each_segment(const CsrStream& stream, Visit&& visit) {
  for (const CsrTile& tile : stream.tiles) csr_for_each_segment(stream, tile, visit);
}

/// Visits runs of ascending columns, in each segment by ascending column: `visit(row, first_value,
/// first_column, length)`, segment by segment. Together they are the nonzeros of the segment in
/// row-major order.
template <class Visit>
void csr_for_each_stretch(const CsrStream& stream, Visit&& visit) {
  const uint16_t* offsets = stream.offsets.data();
  for (const CsrTile& tile : stream.tiles) {
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const CsrGroup& group = stream.groups[static_cast<size_t>(g)];
      for (int64_t i = 0; i < group.rows; ++i) {
        const auto row =
            static_cast<int64_t>(stream.rows_in_order[static_cast<size_t>(group.first_row + i)]);
        // The shared columns and the other columns ascend separately.
        int64_t next = group.first_value + i * group.length, end = next + group.shared;
        int64_t other = end, end_other = next + group.length;
        // One at a time and without a branch on which comes first, which would be mispredicted.
        while (next < end && other < end_other) {
          const bool is_other = offsets[other] < offsets[next];
          visit(row, is_other ? other : next, tile.first_column, int64_t{1});
          next += is_other ? 0 : 1;
          other += is_other ? 1 : 0;
        }
        if (next < end) visit(row, next, tile.first_column, end - next);
        if (other < end_other) visit(row, other, tile.first_column, end_other - other);
      }
    }
  }
}

// The products. Work is cut by blocks and slabs, never by the number of threads, and each sum has
// one order, so results do not depend on the threads. Arrays in stream order must be readable for
// 16 bytes past their end, as every Buffer is. Padding columns of the last slab are either computed
// or left unchanged.

/// Y = X Wᵀ + bias. *Shapes:* x slabs of [batch, columns], y slabs of [batch, rows], bias [rows] or
/// null. *Cost:* 2 · nnz · batch operations.
void csr_product(const CsrStream& stream, const float* values, const float* x, int64_t batch,
                 const float* bias, float* y);

/// gradient = dYᵀ X at the nonzeros, written or added. *Shapes:* dy slabs of [batch, rows], x slabs
/// of [batch, columns]. *Requires* zero padding in the last slab of dy, and finite padding in x's.
void csr_gradient(const CsrStream& stream, const float* dy, const float* x, int64_t batch,
                  Accumulate accumulate, float* gradient);

/// Product and gradient of batches of a few examples, row-major: x [batch, columns], y, dy [batch,
/// rows].
void csr_product_row_major(const CsrStream& stream, const float* values, const float* x,
                           int64_t batch, const float* bias, float* y);
void csr_gradient_row_major(const CsrStream& stream, const float* dy, const float* x, int64_t batch,
                            Accumulate accumulate, float* gradient);

/// dX = dY W for a single example, with the matrix itself instead of its transpose: dy [rows], dx
/// [columns]. *Requires* csr_scatters_row. *Cost:* 2 · nnz operations, and one array of column sums
/// for each of several blocks.
void csr_scatter_row(const CsrStream& stream, const float* values, const float* dy, float* dx);
/// Whether the column sums of all blocks are small compared with the nonzeros.
bool csr_scatters_row(const CsrStream& stream);

/// Products of 2 to kMostInterleaved examples stored as [features, batch]: if there are far too
/// many features for the caches, each nonzero then reads one cache line instead of one per
/// example.
inline constexpr int64_t kMostInterleaved = 8;
void csr_product_interleaved(const CsrStream& stream, const float* values, const float* x,
                             int64_t batch, const float* bias, float* y);
void csr_gradient_interleaved(const CsrStream& stream, const float* dy, const float* x,
                              int64_t batch, Accumulate accumulate, float* gradient);
/// to[column, row] = from[row, column]. *Requires* few rows.
void interleave(const float* from, int64_t rows, int64_t columns, float* to);
/// to[row, column] = from[column, row].
void separate(const float* from, int64_t rows, int64_t columns, float* to);

/// into[i] = from[place[i]]. *Cost:* one pass; bound by the reads' locality.
void gather(std::span<const float> from, std::span<const uint32_t> place, std::span<float> into);

}  // namespace lacuna
