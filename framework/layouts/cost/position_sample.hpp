// Random positions of a pattern, for measuring layouts that store the pattern.
#pragma once

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

/// Units of the pattern: if n < m, n of every m consecutive ones exist, else each with probability
/// `density`. *Requires* a shape that the pattern fits.
Positions sample_positions(const PatternShape& pattern, const Shape& shape, double density);

}  // namespace lacuna
