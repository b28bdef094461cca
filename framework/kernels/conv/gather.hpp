// The loops of sparse convolutions over one slab of lines: see gather.cpp and tap_gradient.cpp.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/kernels/conv/tap_stream.hpp"

namespace lacuna {

/// What is computed after a run and prefetched meanwhile: the first pixels of its first planes, or
/// null, and its first row.
struct NextRun {
  const float *from = nullptr, *to = nullptr;
  int64_t begin = 0;
};

/// Rows of pixels of output planes (or of output gradients), made from source planes.
struct PixelRun {
  int64_t from_plane_lines = 0;  ///< from a source plane to the next
  int64_t from_row_lines = 0;    ///< in a source plane, from where a row is made to the next
  int from_row_step = 1;         ///< and how many rows of the plane that are
  int from_step = 1;             ///< and from a pixel to the next: 1 or 2 lines
  int64_t to_plane_lines = 0, to_row_lines = 0;
  int to_step = 1;  ///< 2 only where from_step is 1
  /// Lines of each output plane's first pixel behind `to`; null: planes are to_plane_lines apart.
  const int64_t* to_planes = nullptr;
  int64_t width = 0;           ///< output pixels of a row
  int64_t begin = 0, end = 0;  ///< output rows to compute
  bool ends_rows = false;      ///< the line behind each output row becomes zero
  Extent reach{0, 0};  ///< rows and columns of a source plane between the first tap and the last
  NextRun next{};
  int most_tile_rows = 1;  ///< rows of pixels that may stay in registers together: 1 or 2

  int64_t to_plane(int64_t plane) const {
    return to_planes == nullptr ? plane * to_plane_lines : to_planes[plane];
  }
};

/// to[plane][pixel] = bias[plane] + Σ_k values[k] · from[pixel + offset k] for the run's rows of
/// every output plane. `from` and `to` point to the first pixel of the first plane; bias may be
/// null.
void gather_pixels(const TapStream& stream, const float* values, const float* from, float* to,
                   const float* bias, const PixelRun& run);

/// gradient[k] += Σ_pixel dy[plane of k][pixel] · x[pixel + offset k] over the run's rows, in
/// stream order. `lanes`, if not null, has the lanes of a line for each plane of dy, to which the
/// plane's lines are added.
void tap_gradient(const TapStream& stream, const float* x, const float* dy, float* gradient,
                  const PixelRun& run, float* lanes = nullptr);

/// Pixels that stay in registers while the nonzeros of an output plane are processed.
struct TileSize {
  int rows = 1, columns = 1;
};
/// The tile that `gather_pixels` takes for output planes of this size.
TileSize gather_tile(Extent output, int most_rows);

}  // namespace lacuna
