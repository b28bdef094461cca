// Products of int8 weights with one example, or a few: they are bound by reading the weight.
//
// Sixteen rows of the weight are the lanes of a vector, and an example is a row of bytes. 32 quads
// of an example stay in registers while the words of a tile of 128 inputs are processed, each with
// the place of its quad. Quads are looked up, not gathered. Sixteen rows have as many words in a
// tile as the longest of them, so some words are zeros.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna {

inline constexpr int64_t kInt8Slice = 16;      ///< rows that are lanes
inline constexpr int64_t kInt8TileQuads = 32;  ///< quads of a tile

/// The words of sixteen rows in a tile: `steps` vectors of one word of each row.
struct Int8SliceRun {
  uint32_t slice = 0, steps = 0;
};

/// The rows of an Int8Block.
struct Int8SlicedBlock {
  int64_t first_row = 0, rows = 0;
  std::vector<int64_t> tile_begin = {};  ///< in runs; one more at the end
  std::vector<Int8SliceRun> runs = {};   ///< of a tile: longest first
  Array<int32_t> words = {};             ///< [step][16], in the order of the runs
  Array<uint8_t> places = {};            ///< of each word's quad in the tile
};

/// An Int8Matrix for few examples.
struct Int8Sliced {
  int64_t rows = 0, columns = 0;
  std::vector<Int8SlicedBlock> blocks = {};
  int64_t bytes() const;
};

/// *Cost:* O(groups + slices · tiles).
Int8Sliced int8_sliced(const Int8Matrix& matrix);

/// The largest number of examples for which these products are faster.
int64_t int8_few_examples();

/// Bytes of an example's row: its features, padded to whole tiles.
int64_t int8_row_bytes(int64_t features);

/// The product of few examples. *Shapes:* x holds [batch, int8_row_bytes(columns)]; residual and
/// floats of the epilogue are row-major [batch, rows], its bytes [batch, int8_row_bytes(rows)],
/// padding included. The results are those of int8_product. *Requires* `sliced` of that matrix.
void int8_few_product(const Int8Matrix& weight, const Int8Sliced& sliced, const uint8_t* x,
                      int64_t batch, const Int8Epilogue& epilogue);

/// Row-major float32 [batch, features] to rows of bytes, as int8_quantize.
void int8_quantize_rows(const float* x, int64_t batch, int64_t features, const Int8Grid& grid,
                        uint8_t* bytes);
/// The same with a grid for each example.
void int8_quantize_row_examples(const float* x, int64_t batch, int64_t features, float* scales,
                                int32_t* zeros, uint8_t* bytes);

}  // namespace lacuna
