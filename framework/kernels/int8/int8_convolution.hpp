// Convolutions of int8 weights with images of bytes: the gather of sparse convolutions
// (kernels/conv/gather.hpp) on lines of quads of channels.
//
// Weights are stored in groups of four input channels at one tap, a 32-bit word each. Images are
// bytes in the order of image slabs (core/image_slabs.hpp), with quads of channels in place of
// channels: [batch/16][channels/4][height + 1][width + 1][16][4]. So a pixel of 16 examples is a
// line of 64 bytes here too. The border contains the bytes that represent 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/conv/conv_plan.hpp"
#include "lacuna/framework/kernels/conv/tap_stream.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna {

/// A convolution's weight of int8 values, for images of any size.
struct Int8Filter {
  int64_t rows = 0, channels = 0, taps = 0;
  int64_t nnz = 0;     ///< weights that were given
  int64_t groups = 0;  ///< groups of four that hold one or more of them
  std::vector<int64_t> row_begin = {};
  std::vector<uint32_t> quad = {};  ///< of each word: (channel / 4) · taps + tap
  Array<int32_t> words = {};
  std::vector<int32_t> row_sums = {};  ///< Σ w of each row

  int64_t bytes() const;  ///< of words, index and sums
};

/// Row r has `values` at columns column_of[row_begin[r]] …, ascending; a column is channel · taps +
/// tap. *Errors:* ShapeError for a row whose sums do not fit 32 bits, and if channels are not a
/// multiple of four. *Cost:* O(nnz + rows).
Int8Filter int8_filter(int64_t rows, int64_t channels, int64_t taps,
                       std::span<const int64_t> row_begin, std::span<const uint32_t> column_of,
                       std::span<const int8_t> values);

/// A filter's words for one size of images and any batch.
struct Int8Convolution {
  ConvPlan plan;  ///< its input channels are quads
  TapStream stream;
  Array<int32_t> words;  ///< in stream order
};

/// *Requires* one group, and a kernel that fits. *Cost:* O(groups).
Int8Convolution make_int8_convolution(const Int8Filter& filter, const ConvolutionShape& shape);

/// Bytes of images [batch, channels, height, width] in their order.
int64_t int8_image_bytes(const Shape& images);

/// The product. *Shapes:* x holds [batch, channels, image] in bytes; residual and floats of the
/// epilogue are image slabs [batch, rows, output] whose borders are zero already, and its bytes
/// int8_image_bytes of that shape, whose borders are written. *Cost:* 8 · groups · pixels · batch
/// operations; units of work are slabs and parts of their rows.
void int8_convolve(const Int8Filter& filter, const Int8Convolution& convolution, const uint8_t* x,
                   int64_t batch, const Int8Epilogue& epilogue);

/// Converts images in image slabs to bytes: round(v / scale) + zero, clamped.
void int8_quantize_images(const Tensor& images, const Int8Grid& grid, uint8_t* bytes);
/// The same with a grid for each example, by its least and largest value. *Shapes:* scales and
/// zeros of batch padded to whole slabs.
void int8_quantize_image_examples(const Tensor& images, float* scales, int32_t* zeros,
                                  uint8_t* bytes);

}  // namespace lacuna
