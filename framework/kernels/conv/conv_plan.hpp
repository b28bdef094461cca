// ConvPlan: how a convolution becomes a gather of shifted lines, worked out from its sizes alone.
//
// In image slabs (core/image_slabs.hpp) a pixel is a line, and neighbouring pixels of a plane are
// neighbouring lines. So an output plane is a sum of input planes, each shifted by a number of
// lines for each tap; with a stride, of every second line of them. Where the tensors themselves do
// not do (a larger stride, or a border wider than one line) they are copied into planes that do, a
// slab at a time: with a stride of s an image is s × s images, its phases, each of every s-th row
// and column. The input's gradient is made phase by phase, copied or not.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/image_slabs.hpp"

namespace lacuna {

/// Planes of lines within one slab.
struct Planes {
  int64_t height = 0, width = 0;  ///< pixels of a plane
  int64_t row_lines = 0;          ///< from a pixel to the one below
  int64_t plane_lines = 0;        ///< from a plane to the next
  int64_t lead_lines = 0;         ///< before the first pixel, and after the last plane
  int64_t slab_lines(int64_t planes) const { return 2 * lead_lines + planes * plane_lines; }
};

/// The planes of a tensor's slab.
Planes planes_of(const ImageSlabs& images);

/// Where a tap reads: in which phase of the input, and how many pixels from the output's place.
struct TapPlace {
  int64_t phase = 0;
  int64_t row = 0, column = 0;
};

struct PixelPhase {
  int64_t row = 0, column = 0;  ///< of its first pixel in the image
};

/// The gather's sizes. Planes of an input channel's phases follow each other.
struct ConvPlan {
  ConvolutionShape shape;
  Extent output;
  std::vector<PixelPhase> phases;  ///< those that some tap reads
  std::vector<TapPlace> places;    ///< of the taps, row-major; rows and columns are the phase's

  Planes x;  ///< forward: input phases, or the images
  bool x_is_tensor;
  Extent x_step;                ///< pixels of x from an output to the next
  std::vector<TapPlace> reads;  ///< of the taps: places in x, of the phase 0 where x is the tensor
  Planes dy;                    ///< input gradient: output gradients
  bool dy_is_tensor;
  Planes dx;  ///< input gradient: phases of the result, or the images
  bool dx_is_tensor;
  Extent dx_step;  ///< pixels of dx from one of a phase to the next
  Extent phase;    ///< pixels of the largest phase

  /// Planes that forward reads.
  int64_t input_planes() const {
    return shape.in_channels * (x_is_tensor ? 1 : static_cast<int64_t>(phases.size()));
  }
  /// Planes that the input's gradient makes.
  int64_t gradient_planes() const {
    return shape.in_channels * static_cast<int64_t>(phases.size());
  }
};

/// *Requires* one group. *Errors:* ShapeError where the kernel does not fit.
ConvPlan make_conv_plan(const ConvolutionShape& shape);

}  // namespace lacuna
