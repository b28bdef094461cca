// ADMM pruning: the best weights and the best mask, in turns.
#pragma once

#include "lacuna/sparsity/one_shot/one_shot_problem.hpp"

namespace lacuna {

/// With the inputs scaled to norm 1, A their Gram matrix plus `damping`, W₀ the weight in that
/// scale, and X = W₀ at first, each round takes the mask M of the largest |X|, the penalty's target
/// ±X (+ on M, − off it), W = (A W₀ ± ρX)(A + ρI)⁻¹, and X = W + X off M. The sparsity of M rises
/// as 1 − (1 − t/15)³ of what it is to become; cells of an N:M pattern keep N all the way. From
/// round 15 on the mask stays, and the rounds only improve the weights; but where least squares
/// follow, which do that best, the rounds go on choosing it, and swaps improve it
/// (swap_search.hpp). With options.grid_in_rounds the rounds on the last mask have for X on M its
/// projection Z onto a grid: the target is 2Z − X, and X = W + X − Z. *Errors:* as prune_one_shot.
/// *Source:* Boža, 2024 (arXiv:2401.02938), and its code.
PrunedWeight prune_by_admm(const OneShotProblem& problem);

}  // namespace lacuna
