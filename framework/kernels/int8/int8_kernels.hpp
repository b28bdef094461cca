// The kernels of int8 products for each instruction set, and the choice between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/framework/kernels/conv/gather.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/kernels/int8/int8_convolution.hpp"
#include "lacuna/framework/kernels/int8/int8_pixels.hpp"
#include "lacuna/framework/kernels/int8/int8_rows.hpp"

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
  const float* float_sums = nullptr;  ///< [rows of the block][64], of the form Floats
  uint8_t* lines = nullptr;           ///< scratch [Int8Cells::gathered_lines][64][4]
};

/// Pixels that a tile of a convolution has at most.
inline constexpr int64_t kInt8TileLines = 16;

/// Some rows of pixels of a slab of images.
struct Int8TapCall {
  const TapStream* stream = nullptr;  ///< of one tile of source planes
  const int32_t* words = nullptr;     ///< in its order
  const int32_t* row_sums = nullptr;
  const uint8_t* from = nullptr;  ///< the slab's first pixel in its first plane
  PixelRun run = {};              ///< in lines of 64 bytes; where it goes, of 16 floats
  int64_t example = 0;            ///< the slab's first
  int64_t first_line = 0;         ///< of the output's first pixel among floats and residual
  const Int8Epilogue* epilogue = nullptr;
  uint8_t* bytes = nullptr;      ///< the output's first pixel in the slab, or null
  uint8_t* row_bytes = nullptr;  ///< scratch [rows][kInt8TileLines][16], where bytes are written
};

/// One block of rows with one example.
struct Int8FewCall {
  const Int8Matrix* matrix = nullptr;
  const Int8SlicedBlock* block = nullptr;
  const uint8_t* x = nullptr;  ///< the example's bytes
  int64_t example = 0;
  const Int8Epilogue* epilogue = nullptr;
  int32_t* sums = nullptr;  ///< zeros, of the block's rows padded to slices
};

/// Some rows of a convolution with one image.
struct Int8PixelCall {
  const Int8Filter* filter = nullptr;
  const Int8PixelConvolution* convolution = nullptr;
  const uint8_t* from = nullptr;  ///< the image's planes
  int64_t begin_row = 0, end_row = 0;
  int64_t first_float = 0;                 ///< of the image among floats and residual
  const Int8Epilogue* epilogue = nullptr;  ///< of this image, whose grid is that of all
  uint8_t* bytes = nullptr;                ///< of this image, or null
  int32_t* sums = nullptr;                 ///< scratch: a span, padded to whole vectors
  int32_t* closed = nullptr;               ///< scratch: a plane, padded to whole vectors
  uint8_t* row_bytes = nullptr;            ///< scratch [4][row_stride]
  int64_t row_stride = 0;
};

/// The functions of one instruction set.
struct Int8Kernels {
  const char* name;
  /// Whether sums of two products of bytes saturate at 16 bits, so that words must be split whose
  /// two weights of a pair have magnitudes above 128 together: into two words of one weight each.
  bool splits_words;
  /// Nonzeros that float32 csr computes in the time of a group of 1 × 4, on the same processor
  /// (bench_int8).
  double group_nonzeros;
  void (*product)(const Int8Call& call);  ///< of a block of groups
  void (*cells)(const Int8Call& call);    ///< of a block of cells
  /// One slab of bytes to floats [features][64], less 128.
  void (*widen)(const uint8_t* slab, int64_t features, float* into);
  void (*end_floats)(const Int8Call& call);  ///< of a block whose sums are floats
  /// One slab [features][64] by the grids of its examples, as inverse scales and zeros.
  void (*quantize)(const float* slab, int64_t features, const float* inverse, const float* zeros,
                   uint8_t* bytes);
  /// The least and largest value of each of 64 examples, 0 included.
  void (*ranges)(const float* slab, int64_t features, float* low, float* high);
  void (*convolve)(const Int8TapCall& call);
  /// Lines of up to four planes of images, by the grids of their sixteen examples.
  void (*quantize_lines)(const float* planes, int64_t plane_floats, int64_t count, int64_t lines,
                         const float* inverse, const float* zeros, uint8_t* bytes);
  /// The least and largest value of each of sixteen examples, 0 included.
  void (*line_ranges)(const float* from, int64_t lines, float* low, float* high);
  int64_t few_examples;  ///< for which `few` is faster than `product`
  void (*few)(const Int8FewCall& call);
  void (*quantize_row)(const float* x, int64_t count, float inverse, float zero, uint8_t* bytes);
  int64_t few_images;  ///< for which `pixels` is faster than `convolve`
  void (*pixels)(const Int8PixelCall& call);
};

extern const Int8Kernels kPlainInt8;
#if defined(__x86_64__)
extern const Int8Kernels kAvx2Int8, kAvxVnniInt8, kAvx512VnniInt8;
#endif

/// The kernels that the active instruction set and the processor run, the best first; the last is
/// plain C++.
const std::vector<const Int8Kernels*>& int8_kernels();

/// Like the functions of int8.hpp, with given kernels; matrices are made for the same ones.
/// `form`: by default int8_form; Groups suit every weight.
Int8Matrix int8_matrix_for(const Int8Kernels& kernels, int64_t rows, int64_t columns,
                           std::span<const int64_t> row_begin, std::span<const uint32_t> column_of,
                           std::span<const int8_t> values,
                           std::optional<Int8Form> form = std::nullopt);
void int8_product_by(const Int8Kernels& kernels, const Int8Matrix& weight, const uint8_t* x,
                     int64_t batch, const Int8Epilogue& epilogue);
void int8_quantize_by(const Int8Kernels& kernels, const float* slabs, int64_t batch,
                      int64_t features, const Int8Grid& grid, uint8_t* bytes);
void int8_quantize_examples_by(const Int8Kernels& kernels, const float* slabs, int64_t batch,
                               int64_t features, float* scales, int32_t* zeros, uint8_t* bytes);
/// Like the functions of int8_rows.hpp.
void int8_few_product_by(const Int8Kernels& kernels, const Int8Matrix& weight,
                         const Int8Sliced& sliced, const uint8_t* x, int64_t batch,
                         const Int8Epilogue& epilogue);
void int8_quantize_rows_by(const Int8Kernels& kernels, const float* x, int64_t batch,
                           int64_t features, const Int8Grid& grid, uint8_t* bytes);
/// Like the functions of int8_convolution.hpp.
Int8Filter int8_filter_for(const Int8Kernels& kernels, int64_t rows, int64_t channels, int64_t taps,
                           std::span<const int64_t> row_begin, std::span<const uint32_t> column_of,
                           std::span<const int8_t> values);
void int8_convolve_by(const Int8Kernels& kernels, const Int8Filter& filter,
                      const Int8Convolution& convolution, const uint8_t* x, int64_t batch,
                      const Int8Epilogue& epilogue);
void int8_quantize_images_by(const Int8Kernels& kernels, const Tensor& images, const Int8Grid& grid,
                             uint8_t* bytes);
void int8_quantize_image_examples_by(const Int8Kernels& kernels, const Tensor& images,
                                     float* scales, int32_t* zeros, uint8_t* bytes);
/// Like the functions of int8_pixels.hpp.
void int8_convolve_pixels_by(const Int8Kernels& kernels, const Int8Filter& filter,
                             const Int8PixelConvolution& convolution, const uint8_t* x,
                             int64_t batch, const Int8Epilogue& epilogue);
void int8_quantize_pixels_by(const Int8Kernels& kernels, const float* images, const Shape& shape,
                             const Int8Grid& grid, uint8_t* bytes);

}  // namespace lacuna::internal
