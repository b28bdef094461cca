// The forward product of 2:4 weights by pairs of rows that share columns.
//
// Two rows of a tile, each with half of its columns, share half of them by chance, and more if each
// row is paired with the most similar one. Each load of activations in shared columns serves two
// multiply-adds. Values stay in their slots: each is spread by a separate load, from anywhere in
// its row.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// The pairs of each block of rows and tile of columns, and the order of their slots. Less than two
/// bytes per slot.
struct NmPairs {
  /// Pairs with the same number of shared columns.
  struct Group {
    uint32_t pairs = 0, shared = 0;
  };
  /// The beginning of a tile of a block of rows.
  struct Part {
    int64_t first_group = 0, first_row = 0, first_byte = 0;
  };

  std::vector<Part> parts = {};  ///< [blocks][tiles], and the end
  std::vector<Group> groups = {};
  std::vector<uint32_t> rows = {};  ///< two per pair; eight more at the end, to prefetch
  /// For each pair, for each four shared columns: their places in the tile, their slots in the
  /// first row, those in the second. Then, for each four other columns of either row: the places of
  /// the first row's columns, their slots, those of the second row's columns, their slots.
  Array<uint8_t> steps = {};

  int64_t bytes() const;
};

/// Whether nm_product_by_pairs supports such a matrix: 2:4 by single rows with every slot in use,
/// with an even number of rows and columns divisible by eight, on Intel's processors with registers
/// of 64 bytes. (On cores that load one vector per cycle, the separate load of every value takes as
/// much time as the pairs save.)
bool nm_has_pairs(const NmMatrix& matrix);

/// *Requires* a matrix that nm_has_pairs accepts, on any processor. *Cost:* one pass over the
/// codes, and 64 comparisons of rows per row.
NmPairs nm_pairs(const NmMatrix& matrix);

/// As nm_product. *Requires* registers of 64 bytes (instruction set avx512).
void nm_product_by_pairs(const NmMatrix& matrix, const NmPairs& pairs, const float* values,
                         const float* x, int64_t batch, const float* bias, float* y);

}  // namespace lacuna
