// Cells: selections in which every cell of an N:M pattern keeps to its quota (see
// config/pattern_shape.h). Of the weight of a convolution the units are a matrix too, [out,
// channels · taps], and the rule knows how many taps; cells and units ascend as their first
// positions do.
#pragma once

#include <span>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/masks/cell_rule.hpp"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {

/// The present units with the largest scores of each cell that holds more than the rule allows; the
/// other cells as they are. `scores` as for top_k over positions. *Cost:* O(count).
Positions prune_cells(const CellRule& rule, const Positions& units, std::span<const float> scores);
/// Prunes as few cells as leave at most `count` units: those first that lose the smallest sum of
/// scores, ties by their place.
Positions prune_cells_to(const CellRule& rule, const Positions& units,
                         std::span<const float> scores, int64_t count);
/// Every cell filled with the units of largest |score|. *Cost:* O(matrix) time where cells have
/// room; memory for a tile of rows. Of several processes, each fills the cells in its rows, and
/// sends what the scores cost, and its share of the grown units to each other. Collective.
Positions fill_cells(const CellRule& rule, const Scores& scores, const Positions& units);
/// Every cell filled with units drawn uniformly.
Positions fill_cells(const CellRule& rule, const CounterRng& rng, const Positions& units);

/// The first cell that is neither full nor as the rule allows: its top row and left column, in
/// units; {-1, -1} when there is none. `some_full` is set when any is full; where it is null, a
/// full one is overfull too. *Cost:* O(count).
struct CellPlace {
  int64_t row = -1, column = -1;
};
CellPlace find_overfull_cell(const CellRule& rule, const Positions& units, bool* some_full);

}  // namespace lacuna
