// Swaps within rows: a better mask for least squares.
#pragma once

#include "lacuna/sparsity/one_shot/one_shot_problem.hpp"

namespace lacuna {

/// A mask whose least squares lose less than those of `pruned.mask`, or as much. In each row those
/// positions may leave whose weight in `pruned` times the norm of its input is smallest, a quarter
/// of the row's and 192 at most, and as many others may come, those with the largest gradients of
/// the row's least squares. Of all pairs the one that gains the most is swapped, until none gains
/// anything; what a swap gains is exact, with all other weights of the row fitted again. Rows keep
/// their counts, and swaps stay in a cell of an N:M pattern and in a score group.
///
/// Nothing is swapped in patterns whose units are more than a position or whose cells more than a
/// row, in rows that keep more than two thirds of the inputs (for the cost) or whose inputs depend
/// on each other, and where there are fewer rows of inputs than inputs: the mask would follow these
/// few, and lose more on others. *Cost:* for a row that keeps k about 0.8 · k³ operations; k² and
/// 193 · k doubles, and no more than the Gram matrix's for all threads.
MaskSet swap_for_least_squares(const OneShotProblem& problem, const PrunedWeight& pruned);

}  // namespace lacuna
