// The number of score groups of a shape, where each row may be one.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/shape.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// `balance_out_groups: rows`: each row is a group, so that all have the same number of nonzeros, a
/// constant fan-in. Its `count` is 0, and the shape's rows stand for it.
inline ScoreGroups each_row_a_group() { return {ScoreGroups::Along::Rows, 0}; }
/// Whether there may be several groups.
inline bool divides(const ScoreGroups& groups) { return groups.count != 1; }
/// The number of groups of this shape, at least 1.
int64_t count_of_groups(const ScoreGroups& groups, const Shape& shape);

}  // namespace lacuna
