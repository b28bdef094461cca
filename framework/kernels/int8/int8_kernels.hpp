// The kernels of int8 products for each instruction set, and the choice between them.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna::internal {

/// One block of rows over one slab.
struct Int8Call {
  const Int8Matrix* matrix = nullptr;
  const Int8Block* block = nullptr;
  const uint8_t* x = nullptr;  ///< the slab's bytes
  int64_t slab = 0;
  int64_t width = 0;  ///< examples in it
  const Int8Epilogue* epilogue = nullptr;
  int32_t* sums = nullptr;       ///< scratch [rows of the block][64], where there are several tiles
  uint8_t* row_bytes = nullptr;  ///< scratch [rows of the block][64], where bytes are written
};

/// The functions of one instruction set.
struct Int8Kernels {
  const char* name;
  /// Whether sums of two products of bytes saturate at 16 bits, so that words must be split whose
  /// two weights of a pair have magnitudes above 128 together: into two words of one weight each.
  bool splits_words;
  void (*product)(const Int8Call& call);
  /// One slab [features][64] by the grids of its examples, as inverse scales and zeros.
  void (*quantize)(const float* slab, int64_t features, const float* inverse, const float* zeros,
                   uint8_t* bytes);
  /// The least and largest value of each of 64 examples, 0 included.
  void (*ranges)(const float* slab, int64_t features, float* low, float* high);
};

extern const Int8Kernels kPlainInt8;
#if defined(__x86_64__)
extern const Int8Kernels kAvx2Int8, kAvxVnniInt8, kAvx512VnniInt8;
#endif

/// Those that the active instruction set and the processor run, the best first; the last one is
/// plain C++.
const std::vector<const Int8Kernels*>& int8_kernels();

/// As the functions of int8.hpp, by certain kernels; a matrix is made for those that read it.
Int8Matrix int8_matrix_for(const Int8Kernels& kernels, int64_t rows, int64_t columns,
                           std::span<const int64_t> row_begin, std::span<const uint32_t> column_of,
                           std::span<const int8_t> values);
void int8_product_by(const Int8Kernels& kernels, const Int8Matrix& weight, const uint8_t* x,
                     int64_t batch, const Int8Epilogue& epilogue);
void int8_quantize_by(const Int8Kernels& kernels, const float* slabs, int64_t batch,
                      int64_t features, const Int8Grid& grid, uint8_t* bytes);
void int8_quantize_examples_by(const Int8Kernels& kernels, const float* slabs, int64_t batch,
                               int64_t features, float* scales, int32_t* zeros, uint8_t* bytes);

}  // namespace lacuna::internal
