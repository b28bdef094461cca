// Growth by scores, of one process or of several: none holds the scores of a whole matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/masks/scores.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// Rows whose scores are asked for at once, of a matrix: 2^18 scores, 256 rows, an eighth of it.
int64_t tile_rows(int64_t rows, int64_t columns);

/// Gives each process tiles of `step` rows of its own, one after the other, and calls
/// `visit(first row, scores)` with those of this process, ascending; a process before another has
/// rows before the other's. All go through theirs side by side, for each needs the others' part of
/// its scores. Collective.
void for_own_tiles(const Scores& scores, int64_t rows, int64_t columns, int64_t step,
                   const std::function<void(int64_t first, std::span<float> tile)>& visit);

/// The numbers of all processes that share scores, one after the other. Collective.
std::vector<int64_t> gather_all(ShardPeers& peers, std::span<const int64_t> own);

/// `present` and the positions outside it with the largest |score|, until each group has
/// `per_group`. Each row's scores are asked for once or twice, by tiles of rows. Of several
/// processes, each selects in its rows; which of these are among the largest of all is found from
/// counts of their scores' bits. Collective.
/// *Cost:* O(matrix) time, O(present + chosen + tile) memory; a tile is 2^18 scores or a row. Each
/// process sends what the scores cost, its share of the grown positions to each other, and for each
/// group that processes share some 1 KiB.
Positions grow_maximum(const Scores& scores, int64_t per_group, const Positions& present,
                       const GroupIndex& groups);

}  // namespace lacuna
