// Activations as int8 products see them, with a gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/kernels/int8/int8.hpp"

namespace lacuna {

/// y = scale · (clamp(round(x / scale) + zero, 0, 255) − zero), by `grid` or, without one, by a
/// grid for each of `rows` equal parts (tokens, or images) that spans its values and 0. The
/// gradient is straight through: dx = dy where x lies on the grid, and 0 where it is clipped
/// (Bengio et al., 2013, arXiv:1308.3432). *Shapes:*
/// [..., features] → the same.
Variable fake_quantize(const Variable& x, const std::optional<Int8Grid>& grid, int64_t rows);

}  // namespace lacuna
