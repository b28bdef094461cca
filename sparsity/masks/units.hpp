// Units: the elements of a matrix that are kept or dropped together, as a smaller matrix.
#pragma once

#include <span>
#include <vector>

#include "lacuna/framework/core/pattern_shape.h"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {

/// The units of which positions are present. *Errors:* ShapeError when one is there in part; says
/// which. *Cost:* O(count).
Positions to_units(const Positions& elements, const PatternShape& pattern);
/// All positions of some units. *Cost:* O(positions).
Positions to_elements(const Positions& units, const PatternShape& pattern);
/// The score of each present unit: the sum of |score| over its positions, or the root of the sum of
/// squares where the pattern says so. `scores` as for top_k over positions.
std::vector<float> unit_scores(const Positions& units, std::span<const float> scores,
                               const PatternShape& pattern);
/// The scores of all units, by rows of units. `scores` must outlive the result.
ScoreRows unit_rows(const ScoreRows& scores, int64_t columns, const PatternShape& pattern);

}  // namespace lacuna
