// ConvPlan: how a convolution becomes a gather of shifted lines, worked out from its sizes alone.
//
// In image slabs (core/image_slabs.h) a pixel is a line, and neighbouring pixels of a plane are
// neighbouring lines. So an output plane is a sum of input planes, each shifted by a number of
// lines for each tap. Where that does not hold of the tensors themselves (a stride, or a border
// wider than one line) they are copied into planes for which it does, a slab at a time: with a
// stride of s an image is s × s images, its phases, each of every s-th row and column.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/image_slabs.h"

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

/// Where a tap reads: which phase of the input, and how many lines from the output's place.
struct TapPlace {
  int64_t phase = 0;
  int64_t row = 0, column = 0;  ///< of the phase's pixels
};

struct Phase {
  int64_t row = 0, column = 0;  ///< of its first pixel in the image
};

/// The gather's sizes. Planes of an input channel's phases follow each other.
struct ConvPlan {
  ConvolutionShape shape;
  Extent output;
  std::vector<Phase> phases;     ///< those that some tap reads
  std::vector<TapPlace> places;  ///< of the taps, row-major

  Planes x;          ///< forward: input phases
  bool x_is_tensor;  ///< as they lie in the tensor
  Planes dy;         ///< input gradient: output gradients
  bool dy_is_tensor;
  Planes dx;  ///< input gradient: phases of the result
  bool dx_is_tensor;

  int64_t input_planes() const { return shape.in_channels * static_cast<int64_t>(phases.size()); }
};

/// *Requires* one group. *Errors:* ShapeError where the kernel does not fit.
ConvPlan make_conv_plan(const ConvolutionShape& shape);

}  // namespace lacuna
