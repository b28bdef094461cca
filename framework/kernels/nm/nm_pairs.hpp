// The forward product of 2:4 weights by pairs of rows that share columns.
//
// Of two rows of a tile, each with half its columns, half are the same by chance, more where each
// row has the partner that suits it best: what is loaded of the activations there serves two
// multiply-adds. Values stay where the slots are: each is spread by a load of its own, from
// anywhere in its row.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// The pairs of each block of rows and tile of columns, and how they go through their slots. Less
/// than two bytes a slot.
struct NmPairs {
  /// Pairs that share as many columns.
  struct Group {
    uint32_t pairs = 0, shared = 0;
  };
  /// Where a tile of a block of rows begins.
  struct Part {
    int64_t first_group = 0, first_row = 0, first_byte = 0;
  };

  std::vector<Part> parts = {};  ///< [blocks][tiles], and the end
  std::vector<Group> groups = {};
  std::vector<uint32_t> rows = {};  ///< two of each pair; eight more at the end, to prefetch
  /// Of each pair, for each four shared columns: their places in the tile, their slots in the first
  /// row, in the second. Then for each four of the other columns of either row: the places of the
  /// first row's, their slots, those of the second row's, their slots.
  Array<uint8_t> steps = {};

  int64_t bytes() const;
};

/// Whether nm_product_by_pairs is there for such a matrix: 2:4 by single rows with every slot in
/// use, of an even number of rows and columns divisible by eight, on Intel's processors with
/// registers of 64 bytes. (Where a core loads one vector a cycle, a load for every value takes what
/// the pairs save.)
bool nm_has_pairs(const NmMatrix& matrix);

/// *Requires* a matrix as of nm_has_pairs, on any processor. *Cost:* a pass over the codes, and 64
/// comparisons of rows for each.
NmPairs nm_pairs(const NmMatrix& matrix);

/// As nm_product. *Requires* registers of 64 bytes (instruction set avx512).
void nm_product_by_pairs(const NmMatrix& matrix, const NmPairs& pairs, const float* values,
                         const float* x, int64_t batch, const float* bias, float* y);

}  // namespace lacuna
