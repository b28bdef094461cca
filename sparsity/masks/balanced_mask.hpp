// Masks in which every row and every column has its share of the positions.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// `nnz` random positions, spread so that the counts of any two rows differ by one at most, and
/// those of any two columns too (with groups of columns: of any two in one group). With as many
/// positions as the larger side none is empty. Columns are dealt out like cards: each row takes the
/// next ones of a shuffled deck of all columns, which is shuffled again when it is used up.
/// *Requires* nnz a multiple of the number of groups, at most all positions. *Cost:* O(nnz +
/// columns); 8 bytes a column in addition to the result.
Positions balanced_mask(const CounterRng& rng, const Shape& shape, int64_t nnz,
                        const ScoreGroups& groups = {});

/// `kept` with a random position added in each row and each column that has none: empty rows meet
/// empty columns first. Of a weight with taps (matrix_taps) an input channel counts as one column,
/// and gets its position at a random tap. Stops where a group has `per_group`. *Cost:* O(rows +
/// columns + kept).
Positions revive_empty(const CounterRng& rng, int64_t per_group, const Positions& kept,
                       const GroupIndex& groups, int64_t taps = 1);

}  // namespace lacuna
