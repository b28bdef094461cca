// Pruning and the grid of int8 weights at once.
#pragma once

#include <string>

#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {

/// prune_one_shot with options.grid. The method prunes in float32 first, for the scales of the
/// grid, by what is kept of each row, and a sweep on its mask brings its weights to the grid: with
/// least squares these lose the least there is on the mask, and what the sweep loses comes on top
/// of it. sparsegpt also chooses its mask again in a sweep from the given weights that brings them
/// to the grid, so that each column makes up for what both take from those before it; of the two
/// results the one with the smaller error is taken. Weights of dead inputs are rounded. Then
/// weights change on the grid one by one, as long as the outputs come nearer to those of the given
/// weight (grid_descent.hpp): this takes back most of what a sweep leaves, which fixes each column
/// before it knows the later ones.
PrunedWeight prune_to_grid(const std::string& layer, const Tensor& weight, const InputGram& gram,
                           const MaskSelector& selector, int64_t keep, const MaskSet* present,
                           const OneShotOptions& options);

}  // namespace lacuna
