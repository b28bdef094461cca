// The transpose of a matrix that is 2:4 in both directions, and copying values to it.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// The transpose, which is a 2:4 matrix too. A tile of 4 × 4 elements has eight slots in either
/// matrix, and eight half bytes in `places`: for each slot of the transpose (two per row), the
/// place of its value among the eight slots of the original (two per row). An unused slot copies an
/// unused one, which is zero.
struct NmTranspose {
  NmMatrix matrix = {};
  std::vector<uint32_t> places = {};  ///< each four rows after another, by column

  int64_t bytes() const {
    return matrix.bytes() + static_cast<int64_t>(places.size() * sizeof(uint32_t));
  }
};

/// *Requires* a 2:4 matrix whose rows are divisible by four, with at most two nonzeros in each
/// column of four rows. *Cost:* O(slots).
NmTranspose nm_transpose(const NmMatrix& matrix);

/// into = the values in the transpose's slots. *Cost:* one pass over both.
void nm_transpose_values(const NmMatrix& matrix, const NmTranspose& transpose, const float* values,
                         float* into);

}  // namespace lacuna
