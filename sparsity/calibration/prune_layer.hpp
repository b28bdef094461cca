// prune_layer: one-shot pruning of a layer by its calibration, of a convolution group by group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/one_shot/input_gram.h"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {

/// As prune_one_shot, of a weight whose outputs belong to as many groups as there are Gram
/// matrices: those of a group are pruned by its own inputs, and keep as many positions as those of
/// any other, or as are present. Messages tell of inputs that were always zero, and of fewer rows
/// than inputs where the method inverts a matrix of both.
/// *Errors:* those of prune_one_shot; in addition, of several groups: ConfigError with score
/// groups, ShapeError where the pattern does not divide a group.
PrunedWeight prune_layer(const std::string& layer, const Tensor& weight,
                         const std::vector<InputGram>& grams, const MaskSelector& selector,
                         int64_t keep, const MaskSet& present, const OneShotOptions& options);

}  // namespace lacuna
