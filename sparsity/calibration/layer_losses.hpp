// The loss of a model with one weight pruned, at several sparsities.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/one_shot/input_gram.h"
#include "lacuna/sparsity/one_shot/one_shot.h"
#include "lacuna/sparsity/options/loss_table.h"

namespace lacuna {

/// The mean loss of a model on the calibration examples, in evaluation mode. *Errors:* ConfigError,
/// which begins with `type` and says `when`, if it is not finite.
double finite_loss(const std::function<double()>& loss, std::string_view type,
                   std::string_view when);

/// Prunes the weight to each of the sparsities by `options`, computes the loss, and gives the
/// weight its values back. Counts are those of one-shot pruning: whole units, at least one, and at
/// most what is present. Where nothing is to be pruned, the loss is `unpruned`. *Errors:* those of
/// prune_layer and finite_loss. *Cost:* for each sparsity prune_layer and a loss.
LossTable::Row losses_of_layer(Parameter& parameter, const std::vector<InputGram>& grams,
                               const MaskSelector& selector, const OneShotOptions& options,
                               const std::vector<double>& sparsities, double unpruned,
                               const std::function<double()>& loss);

}  // namespace lacuna
