// N:M sparsity: of each M consecutive columns of a row, at most N are nonzero. The storage of such
// a matrix, and the three products of training.
//
// Every group of M columns has the same number of slots for values, N or a little more. So all rows
// have the same number, and a value needs only a code of 2 or 4 bits: its column within the group.
// Slots without a nonzero have value and gradient zero.
//
// The columns are cut into tiles that fit the first-level cache as rows of a slab. Slots are
// ordered by tile, then row, then column, as the kernels read them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// A tile's columns, and where its slots and codes begin. Row r's slots begin at
/// first_slot + r · slots, its codes at first_code + r · code_bytes.
struct NmTile {
  int64_t first_column = 0, columns = 0;
  int64_t first_slot = 0, slots = 0;
  int64_t first_code = 0, code_bytes = 0;
};

/// The size of an N:M matrix and its N:M. They determine the place of each slot, for any positions.
struct NmMatrixForm {
  /// Rows of a slab that stay in a first-level cache of 32 KiB.
  static constexpr int64_t kMostTileColumns = 128;

  int64_t rows = 0, columns = 0;  ///< columns divisible by m
  PatternShape pattern = PatternShape::nm(2, 4);

  int n() const { return pattern.n(); }
  int m() const { return pattern.m(); }

  /// Slots of a group: n, or the next multiple of four if n is not 1, 2 or a multiple of four.
  int slots() const { return n() <= 2 ? n() : (n() + 3) / 4 * 4; }
  /// Bits of a code: 2 for m ≤ 4, else 4.
  int code_bits() const { return m() <= 4 ? 2 : 4; }
  int64_t slots_of_row() const { return columns / m() * slots(); }
  int64_t stored() const { return rows * slots_of_row(); }
  int64_t code_bytes() const;

  /// Columns of all tiles but the last; a row's slots in them are a multiple of four.
  int64_t tile_columns() const;
  int64_t tiles() const;  ///< at least 1; it may have no columns
  NmTile tile(int64_t t) const;

  /// Number of rows of a thread's unit of work: a multiple of four.
  int64_t rows_of_block() const;

  /// *Errors:* ShapeError unless there are rows · columns weights.
  void require_weights(size_t count) const;

  /// The code of a slot, given the codes of its row in its tile.
  int64_t code(const uint8_t* row_codes, int64_t slot) const {
    const int64_t bit = slot * code_bits();
    return row_codes[bit / 8] >> (bit % 8) & ((1 << code_bits()) - 1);
  }
};

/// An N:M matrix without its values.
struct NmMatrix {
  NmMatrixForm form = {};
  std::vector<uint8_t> codes = {};    ///< of all slots; eight bytes more at the end
  std::vector<uint32_t> unused = {};  ///< slots without a nonzero, ascending

  int64_t bytes() const {
    return static_cast<int64_t>(codes.size() + unused.size() * sizeof(uint32_t));
  }
};

/// Builds a matrix. Row r has nonzeros in columns[row_begin[r]] … columns[row_begin[r+1] − 1],
/// ascending. *Requires* at most n of them in a group, and fewer than 2³² slots. *Cost:*
/// O(slots).
NmMatrix nm_matrix(const NmMatrixForm& form, std::span<const int64_t> row_begin,
                   std::span<const uint32_t> columns);

/// The matrix of a mask's bits, row after row. Empty if some group does not have n bits, if n is
/// not 1, 2 or 4, or if m is not 4, 8 or 16. *Requires* rows · columns bits. *Cost:* a few
/// instructions for each 128 columns of a row.
std::optional<NmMatrix> nm_matrix_of_full(const NmMatrixForm& form, const BitMask& mask);

/// Whether each four rows have at most two bits in each column. *Requires* rows divisible by four.
bool nm_columns_fit(const NmMatrixForm& form, const BitMask& mask);

/// Convert slots' values from and to a dense matrix [rows, columns], row-major, zero without a
/// slot. Unused slots become zero. *Cost:* one pass over both; vectorized for most formats.
void nm_from_dense(const NmMatrix& matrix, const float* dense, float* values);
void nm_to_dense(const NmMatrix& matrix, const float* values, float* dense);

/// Calls `visit(slot, row, column)` for each slot with a nonzero, ascending by slot: in each row,
/// columns ascend.
template <class Visit>
void nm_for_each(const NmMatrix& matrix, Visit&& visit) {
  const NmMatrixForm& form = matrix.form;
  auto unused = matrix.unused.begin();
  const int64_t slots = form.slots();
  for (int64_t t = 0; t < form.tiles(); ++t) {
    const NmTile tile = form.tile(t);
    int64_t slot = tile.first_slot;
    for (int64_t row = 0; row < form.rows; ++row) {
      const uint8_t* codes = matrix.codes.data() + tile.first_code + row * tile.code_bytes;
      int64_t first = tile.first_column;
      for (int64_t k = 0; k < tile.slots; first += form.m()) {
        for (const int64_t end = k + slots; k < end; ++k, ++slot) {
          if (unused != matrix.unused.end() && *unused == slot) {
            ++unused;
          } else {
            visit(slot, row, first + form.code(codes, k));
          }
        }
      }
    }
  }
}

// The products. Work is cut by rows and slabs, never by the number of threads, and each sum has one
// order, so results do not depend on the threads. Arrays of slots must be readable for 16 bytes
// past their end, as every Buffer is. An unused slot multiplies its zero with an activation of its
// group: if that is infinite or NaN, the output becomes NaN. Padding columns of the last slab are
// either computed or left unchanged.

/// Y = X Wᵀ + bias. *Shapes:* x slabs of [batch, columns], y slabs of [batch, rows], bias [rows] or
/// null. *Cost:* 2 · slots · batch operations.
void nm_product(const NmMatrix& matrix, const float* values, const float* x, int64_t batch,
                const float* bias, float* y);

/// The product of rows [begin, end) and one slab of at most 64 examples, in the calling thread, for
/// callers that cut the work differently. *Shapes:* x the slab, y [end − begin][64].
void nm_product_part(const NmMatrix& matrix, const float* values, int64_t begin, int64_t end,
                     const float* x, int64_t batch, float* y);

/// gradient = dYᵀ X at the nonzeros, written or added; zero in unused slots. *Shapes:* dy slabs of
/// [batch, rows], x slabs of [batch, columns]. *Requires* zero padding in the last slab of dy, and
/// finite padding in x's.
void nm_gradient(const NmMatrix& matrix, const float* dy, const float* x, int64_t batch,
                 Accumulate accumulate, float* gradient);

/// Product and gradient of batches of a few examples, row-major: x [batch, columns], y, dy [batch,
/// rows].
void nm_product_row_major(const NmMatrix& matrix, const float* values, const float* x,
                          int64_t batch, const float* bias, float* y);
void nm_gradient_row_major(const NmMatrix& matrix, const float* dy, const float* x, int64_t batch,
                           Accumulate accumulate, float* gradient);

}  // namespace lacuna
