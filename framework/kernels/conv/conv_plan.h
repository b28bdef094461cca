// ConvPlan: how a convolution becomes a gather of shifted lines, worked out from its sizes alone.
//
// In image slabs (core/image_slabs.h) a pixel is a line, and the outputs of a plane follow each
// other at the distance of the inputs they are made from. So an output plane is a sum of input
// planes, each shifted by a number of lines for each tap and taken as one long run, borders
// included: what comes out between the rows is thrown away. Where that does not hold of the tensors
// themselves (a stride, a border wider than one line, an output narrower than the input) they are
// copied into planes for which it does, a slab at a time: with a stride of s an image is s × s
// images, its phases, each of every s-th row and column.
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
  Planes y;          ///< forward: outputs, at the distances of x
  bool y_is_tensor;
  Planes dy;  ///< input gradient: output gradients
  bool dy_is_tensor;
  Planes dx;  ///< input gradient: phases of the result, at the distances of dy
  bool dx_is_tensor;

  int64_t input_planes() const { return shape.in_channels * static_cast<int64_t>(phases.size()); }
  /// Lines of an output plane's run.
  int64_t output_lines() const { return (output.height - 1) * x.row_lines + output.width; }
  int64_t input_lines() const { return (dx.height - 1) * dy.row_lines + dx.width; }
};

/// *Requires* one group. *Errors:* ShapeError where the kernel does not fit.
ConvPlan make_conv_plan(const ConvolutionShape& shape);

}  // namespace lacuna
