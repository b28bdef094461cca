// The input gradient of 2:4 weights by groups of four columns, without a transposed matrix.
//
// The four rows of dX of a group stay in registers while the rows of a tile of dY are read. These
// are sorted by the two of the four columns that they keep: six runs of straight-line code, in
// which each loaded vector of dY serves two multiply-adds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// The rows of each tile, sorted by the columns that they keep in each group. Half a byte per slot.
struct NmColumns {
  /// The pairs of columns of a group.
  static constexpr std::array<std::array<int, 2>, 6> kPairs = {
      {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};

  int64_t tile_rows = 0;  ///< rows of a slab that stay in the first-level cache: at most 128
  int64_t tiles = 0;
  Array<uint8_t> rows = {};          ///< [tile][group][by pair, ascending]: row within the tile
  std::vector<uint8_t> counts = {};  ///< [tile][group][pair]: rows that keep it

  int64_t bytes() const { return static_cast<int64_t>(rows.size() + counts.size()); }
};

/// Whether nm_input_gradient supports such a matrix: 2:4 by single rows with every slot in use, on
/// processors with 32 registers of 64 bytes. (With 16 registers, the sums of four columns are too
/// few to hide a multiply-add's latency.)
bool nm_has_columns(const NmMatrix& matrix);

/// *Requires* nm_has_columns, but on any processor. *Cost:* one pass over the codes.
NmColumns nm_columns(const NmMatrix& matrix);

/// The values in the order of NmColumns::rows, two per row. *Shapes:* both have form.stored()
/// values. *Cost:* one pass.
void nm_values_by_columns(const NmMatrixForm& form, const NmColumns& columns, const float* values,
                          float* into);

/// dX = dY W. *Requires* nm_has_columns. *Shapes:* `values` by columns, dy slabs of [batch, rows],
/// dx slabs of [batch, columns]. *Cost:* 2 · slots · batch operations. Each sum has one order for
/// any number of threads.
void nm_input_gradient(const NmMatrixForm& form, const NmColumns& columns, const float* values,
                       const float* dy, int64_t batch, float* dx);

}  // namespace lacuna
