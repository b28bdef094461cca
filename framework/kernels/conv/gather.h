// The loops of sparse convolutions over one slab of lines: see gather.cpp and tap_gradient.cpp.
#pragma once

#include <cstdint>

#include "lacuna/framework/kernels/conv/tap_stream.h"

namespace lacuna {

/// Runs of lines: source planes, and output planes (or output gradients) at the same distances.
struct LineRun {
  int64_t from_plane_lines = 0;  ///< from a source plane to the next
  int64_t to_plane_lines = 0;
  int64_t row_lines = 0;       ///< from a pixel to the one below, in both
  int64_t width = 0;           ///< output pixels of a row; the lines behind them become zero
  int64_t begin = 0, end = 0;  ///< output lines to compute
};

/// to[row][line] = bias[row] + Σ_k values[k] · from[line + offset k] for lines [begin, end) of
/// every output plane. `from` and `to` point to the first pixel of the first plane; bias may be
/// null.
void gather_lines(const TapStream& stream, const float* values, const float* from, float* to,
                  const float* bias, const LineRun& run);

/// gradient[k] += Σ_line dy[row of k][line] · x[line + offset k] over lines [begin, end), in stream
/// order. *Requires* zeros in dy behind the pixels of each row.
void tap_gradient(const TapStream& stream, const float* x, const float* dy, float* gradient,
                  const LineRun& run);

/// Output lines that `gather_lines` takes at a time where a run is long: ranges that begin at
/// multiples of it lose nothing.
int64_t gather_tile_lines();

}  // namespace lacuna
