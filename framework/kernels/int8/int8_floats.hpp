// Int8 weights that are computed in float32, where the int8 kernels would be slower. The floats
// hold the integers of int8.
//
// Products of a byte less 128 with a weight are integers of at most 2¹⁴. Sums of up to 1024 of them
// are integers of at most 2²⁴, which float32 represents exactly, and so are all their partial sums.
// So the sparse float32 product gives exactly the sums of int8, in any order and on any instruction
// set.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/csr/csr.hpp"

namespace lacuna {

struct Int8Epilogue;
struct Int8Matrix;

/// The most nonzeros of a row whose sums float32 represents.
inline constexpr int64_t kMostInt8Floats = 1024;

/// The weight: a stream of its nonzeros, and their values as floats.
struct Int8Floats {
  CsrStream stream = {};
  Array<float> values = {};

  int64_t bytes() const;
};

namespace internal {

struct Int8Groups;
struct Int8Kernels;

/// *Requires* rows of at most kMostInt8Floats nonzeros.
Int8Floats int8_floats(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                       std::span<const uint32_t> column_of, std::span<const int8_t> values);

/// The same weights in groups of 1 × 4, of the rows [first_row, end_row).
Int8Groups int8_groups(const Int8Floats& floats, int64_t first_row, int64_t end_row);

/// int8_product of a weight in the form Floats. *Cost:* the product, a pass over the inputs that
/// widens them to floats, and one over the sums.
void int8_float_product(const Int8Kernels& kernels, const Int8Matrix& weight, const uint8_t* x,
                        int64_t batch, const Int8Epilogue& epilogue);

}  // namespace internal
}  // namespace lacuna
