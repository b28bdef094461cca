// Units: the elements of a matrix that are kept or dropped together, as a smaller matrix.
//
// Of a weight with taps (matrix_taps), column c·taps + t of the smaller matrix is tap t of the c-th
// unit of channels, whose elements lie `taps` columns apart: so units ascend as their first
// elements do, and ties go to the lower index of either.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {

/// The units of which positions are present. *Errors:* ShapeError that names a unit which is
/// there in part. *Cost:* O(count).
Positions to_units(const Positions& elements, const PatternShape& pattern, int64_t taps = 1);
/// All positions of some units. *Cost:* O(positions).
Positions to_elements(const Positions& units, const PatternShape& pattern, int64_t taps = 1);
/// The score of each present unit: the sum of |score| over its positions, or the root of the sum of
/// squares if the pattern requires it. `scores` as for top_k over positions.
std::vector<float> unit_scores(const Positions& units, std::span<const float> scores,
                               const PatternShape& pattern, int64_t taps = 1);
/// The scores of all units, by rows of units. `columns` are the elements'. `scores` must outlive
/// the result.
Scores unit_rows(const Scores& scores, int64_t columns, const PatternShape& pattern,
                 int64_t taps = 1);

}  // namespace lacuna
