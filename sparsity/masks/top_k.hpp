// Exact selection by score among a matrix's positions, in separate competitions of score groups.
// Pure functions; ties go to the lower flat index, and NaN ranks below everything.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// The `per_group` present positions with the largest scores in each group (all of them, where
/// these are fewer). `scores` has one entry per present position, ascending by flat index, as
/// Parameter::compacted gives them. *Errors:* ShapeError when their number differs. *Cost:*
/// O(count), radix selection.
Positions top_k(const Positions& present, std::span<const float> scores, int64_t per_group,
                const GroupIndex& groups);

}  // namespace lacuna
