// Convolutions of int8 weights with few images: the lanes are pixels of one image.
//
// An image is bytes [channels/4][height · width][4], row-major quads of channels. For a product,
// its quads are copied into planes with a border (with a stride, one plane for each phase of rows
// and columns), in which every tap is a constant offset. So an output plane, read as one row that
// includes the borders between its rows, is a sum of shifted lines. Results in the borders are
// dropped at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/kernels/int8/int8_convolution.hpp"

namespace lacuna {

/// A plane of quads with its border, of which there are `phases` for each quad of channels.
struct Int8PixelPlanes {
  struct Phase {
    int64_t row = 0, column = 0;  ///< in the image with its padding
  };
  std::vector<Phase> phases;  ///< those that some tap reads
  int64_t height = 0, width = 0;
  int64_t quads() const { return height * width; }
};

/// A filter's words for one size of images.
struct Int8PixelConvolution {
  ConvolutionShape shape;
  Extent output;
  Int8PixelPlanes planes;
  Array<int32_t> offsets;  ///< of each word of the filter: bytes from the output's place

  /// Quads from the first output to the end of the last, borders between rows included.
  int64_t span() const { return (output.height - 1) * planes.width + output.width; }
};

/// *Requires* one group, and a kernel that fits. *Cost:* O(groups).
Int8PixelConvolution int8_pixel_convolution(const Int8Filter& filter,
                                            const ConvolutionShape& shape);

/// The largest number of images for which these products are faster.
int64_t int8_few_images();

/// Bytes of images [batch, channels, height, width] in their order.
int64_t int8_pixel_bytes(const Shape& images);

/// The product of few images. *Shapes:* x holds [batch, channels, image] in bytes; residual and
/// floats of the epilogue are row-major [batch, rows, output], its bytes int8_pixel_bytes of that.
/// The results are those of int8_convolve. Units of work are examples and blocks of rows.
void int8_convolve_pixels(const Int8Filter& filter, const Int8PixelConvolution& convolution,
                          const uint8_t* x, int64_t batch, const Int8Epilogue& epilogue);

/// Row-major float32 images to bytes, as int8_quantize.
void int8_quantize_pixels(const float* images, const Shape& shape, const Int8Grid& grid,
                          uint8_t* bytes);
/// The same with a grid for each example, by its least and largest value.
void int8_quantize_pixel_examples(const float* images, const Shape& shape, float* scales,
                                  int32_t* zeros, uint8_t* bytes);

}  // namespace lacuna
