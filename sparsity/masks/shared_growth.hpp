// Growth by scores of which each of several processes sees rows of its own: none holds, or is sent,
// the scores of a whole matrix.
#pragma once

#include <cstdint>

#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {

/// Rows whose scores are asked for at once, of a matrix: 2^18 scores, 256 rows, an eighth of it.
int64_t tile_rows(int64_t rows, int64_t columns);

/// `present` and the positions outside it with the largest |score|, until there are `count`: what
/// `grow_maximum` of top_k.hpp gives. Each process selects in its rows; which of these are among
/// the largest of all is found from counts of their scores' bits. Collective. *Cost:* each process
/// sends what the scores cost, some 1 KiB, and its share of the grown positions to each other.
Positions grow_maximum(SharedScores& scores, int64_t count, const Positions& present);

}  // namespace lacuna
