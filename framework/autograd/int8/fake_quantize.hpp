// Activations as int8 products see them, with a gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// y = scale · (clamp(round(x / scale) + zero, 0, 255) − zero), by `grid` or, without one, by a
/// grid for each of `rows` equal parts (tokens, or images) that spans its values and 0. The
/// gradient is straight through: dx = dy where x lies on the grid, and 0 where it is clipped
/// (Bengio et al., 2013, arXiv:1308.3432). *Shapes:*
/// [..., features] → the same.
Variable fake_quantize(const Variable& x, const std::optional<Int8Grid>& grid, int64_t rows);

/// A grid whose scale is trained: `grid.scale` is its value now.
struct LearnedGrid {
  Int8Grid grid = {};
  /// What the scale is computed from: one number, which gets `gradient_factor` · dL/dscale.
  ParameterPtr parameter;
  double gradient_factor = 1.0;
};

/// fake_quantize by one grid, with a gradient of its scale, too: Σ dy · d over all x, where d =
/// round(x / scale) − x / scale on the grid, and −zero or 255 − zero where x is clipped. *Source:*
/// Esser et al., 2020 (arXiv:1902.08153), eq. 3; with a zero, which stays.
Variable fake_quantize(const Variable& x, const LearnedGrid& learned);

}  // namespace lacuna
