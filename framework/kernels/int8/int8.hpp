// Products of int8 weights with 8-bit activations: sums in 32 bits, and the operations after them
// in the same pass.
//
// Weights are stored in groups of 1 × 4: four neighbouring inputs of an output are one 32-bit word,
// and the words of a matrix are a csr stream whose columns are quads of inputs. Activations are
// unsigned bytes in the order [batch/64][features/4][64][4]: the four features of a quad lie next
// to each other for each example, so a quad of a slab is a line of 256 bytes, as a feature of a
// float32 slab is. A float v is stored as the byte q with v ≈ scale · (q − zero).
//
// Rows that have their inputs in common are stored in cells of four (int8_cells.hpp).
//
// Sums are exact, and everything after them is rounded in a fixed way (multiply-adds are fused only
// where the source says so). So results depend neither on the number of threads nor on the
// instruction set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/kernels/int8/int8_cells.hpp"
#include "lacuna/framework/kernels/int8/int8_floats.hpp"

namespace lacuna {

/// How bytes represent floats: scale · (q − zero), for q from 0 to 255.
struct Int8Grid {
  float scale = 1.0f;  ///< finite, above 0
  int32_t zero = 0;    ///< 0 to 255
  friend bool operator==(const Int8Grid&, const Int8Grid&) = default;
};

/// The grid that spans [low, high] and 0, which it represents exactly. For an empty or infinite
/// range, a grid of scale 1.
Int8Grid int8_grid(float low, float high);

/// Bytes of activations in their order.
int64_t int8_slab_bytes(int64_t batch, int64_t features);

/// Rows of a matrix that follow each other, a multiple of four but for the last ones.
struct Int8Block {
  int64_t first_row = 0, rows = 0;
  Int8Cells cells = {};               ///< of the forms Cells and GatheredCells
  CsrStream stream = {};              ///< of Groups: columns are quads, rows from 0
  Array<int32_t> words = {};          ///< four weights each, in stream order
  std::vector<uint32_t> absent = {};  ///< rows without a group in the last tile
};

/// A weight [rows, columns] of int8 values.
struct Int8Matrix {
  int64_t rows = 0, columns = 0;
  int64_t nnz = 0;     ///< weights that were given
  int64_t groups = 0;  ///< groups of four that hold one or more of them
  Int8Form form = Int8Form::Groups;
  bool fits_pairs = false;  ///< words are split where 16 bits need it (Int8Kernels::splits_words)
  std::vector<Int8Block> blocks = {};
  Int8Floats floats = {};              ///< of the form Floats: the whole weight
  std::vector<int32_t> row_sums = {};  ///< Σ w of each row

  int64_t bytes() const;  ///< of words, index and sums
};

/// Builds a matrix whose row r has `values` at columns column_of[row_begin[r]] …, ascending.
/// *Errors:* ShapeError for a row whose sums do not fit 32 bits. *Cost:* O(nnz + rows).
Int8Matrix int8_matrix(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                       std::span<const uint32_t> column_of, std::span<const int8_t> values);

enum class Int8Activation { None, ReLU, GELU, GELUTanh };

/// What a product does with its sums: y = activation(scale · (Σ w q − zero Σ w) + bias) +
/// residual, with an optional ReLU. y is written as float32 slabs, as bytes for the next product,
/// or both.
struct Int8Epilogue {
  const float* scales = nullptr;  ///< by row: the weight's scale, times the input's if it is one
  const float* bias = nullptr;    ///< by row, or null
  int32_t zero = 0;               ///< of the input
  /// By example, padded to whole slabs: the input's grids if each example has its own; otherwise
  /// null.
  const float* example_scales = nullptr;
  const int32_t* example_zeros = nullptr;
  Int8Activation activation = Int8Activation::None;
  const float* residual = nullptr;  ///< slabs [batch, rows], or null
  bool rectifies_sum = false;       ///< a ReLU after the residual
  float* floats = nullptr;          ///< slabs [batch, rows], or null
  uint8_t* bytes = nullptr;         ///< int8_slab_bytes(batch, rows), or null
  Int8Grid grid = {};               ///< of the bytes
};

/// The product of a batch. *Shapes:* x holds [batch, columns] in bytes. Padding lanes of the last
/// slab are computed with the others, or left as they are. *Cost:* 8 · groups · batch operations;
/// units of work are slabs and blocks of rows.
void int8_product(const Int8Matrix& weight, const uint8_t* x, int64_t batch,
                  const Int8Epilogue& epilogue);

/// Float32 slabs [batch, features] to bytes: round(v / scale) + zero, clamped; NaN becomes 0.
void int8_quantize(const float* slabs, int64_t batch, int64_t features, const Int8Grid& grid,
                   uint8_t* bytes);

/// The same with a grid for each example, by its least and largest value. *Shapes:* scales and
/// zeros of batch padded to whole slabs.
void int8_quantize_examples(const float* slabs, int64_t batch, int64_t features, float* scales,
                            int32_t* zeros, uint8_t* bytes);

/// The kernels in use: "avx512-vnni", "avx-vnni", "avx2" or "plain".
std::string int8_kernels_name();

/// Nonzeros that float32 csr computes in the time of one group with these kernels.
double int8_group_nonzeros();

}  // namespace lacuna
