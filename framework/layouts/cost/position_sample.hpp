// Random positions of a pattern, for measuring the layouts that store such.
#pragma once

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

/// Units of the pattern; of every m side by side n exist where n < m, else each with probability
/// `density`. *Requires* a shape that the pattern fits.
Positions sample_positions(const PatternShape& pattern, const Shape& shape, double density);

}  // namespace lacuna
