// SparseGPT: columns are pruned from left to right, and those that follow make up for it.
#pragma once

#include "lacuna/sparsity/one_shot/one_shot_problem.hpp"

namespace lacuna {

/// With H the damped Gram matrix and U the upper triangular matrix of H⁻¹ = Uᵀ·U, the scores
/// w² / U_jj² choose what is kept of a block of columns (of an N:M pattern of M columns at a time,
/// by weights that are up to date); then for each column j of the block the error
/// e = (w_j − q_j) / U_jj of what it becomes is taken off the columns that follow, w −= e · U_j.
/// Of a convolution's weight with a pattern the columns are taken tap by tap, so that M channels of
/// a tap follow each other. *Errors:* as prune_one_shot; ConfigError too where an N:M pattern
/// should keep less than it can. *Source:* Frantar and Alistarh, 2023 (arXiv:2301.00774), and their
/// code; theirs prunes ties and one position more of each block.
PrunedWeight prune_by_sparse_gpt(const OneShotProblem& problem);

}  // namespace lacuna
