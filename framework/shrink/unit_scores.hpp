// Scores of units: what is lost where one is removed. The larger, the more.
#pragma once

#include <functional>
#include <vector>

#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/framework/shrink/shrink_options.hpp"
#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// The mean square of the weights that give a unit, times that of the weights that take it, each
/// divided by the mean over the units of its layer. Factors of a norm count as weights.
std::vector<double> magnitude_scores(const ModelUnits& units);

/// Computes the gradients of a loss, batch by batch of calibration examples, in evaluation mode,
/// and calls the function after each.
using GradientRun = std::function<void(Module& model, const std::function<void()>& after_batch)>;

/// Σ w · ∂loss/∂w over the weights that take a unit (of a unit that none takes, those that give
/// it), by the gradients that the parameters have: to first order, what removing it changes of the
/// loss. *Cost:* O(elements).
std::vector<double> loss_changes(const ModelUnits& units);

/// The mean over batches of (Σ w · ∂loss/∂w)², as of `loss_changes`. *Source:* Molchanov et al.,
/// "Importance estimation for neural network pruning", 2019 (arXiv:1906.10771), equation 8. Frozen
/// weights count as others. *Errors:* DataError for gradients that are not finite.
std::vector<double> saliency_scores(Module& model, const ModelUnits& units, const GradientRun& run);

/// What removing a unit changes of the outputs of the layers that take it, ‖XΔᵀ‖² / ‖XWᵀ‖² summed
/// over these, where the remaining units are refitted to compensate: tr(W_S (H⁻¹_SS)⁻¹ W_Sᵀ) with S
/// the unit's columns of a weight W and H the damped Gram matrix of its inputs (SparseGPT's error,
/// for units). *Cost:* for each layer a pass over the calibration examples, and in³ operations.
std::vector<double> error_scores(Module& model, const ModelUnits& units, const CalibrationRun& run);

/// Takes the columns of units that do not stay out of all weights, layer by layer, and fits the
/// rest of each to the outputs that it gave before: least squares over the calibration examples, on
/// the inputs that the layers before it give by then. Masks stay. *Errors:* those of
/// fit_least_squares.
void fit_without_units(Module& model, const ModelUnits& units, const KeptUnits& kept,
                       const CalibrationRun& run);

/// All units but those that no nonzero weight gives, or none takes, until there are no more; units
/// that cannot be removed stay, and so do those of other layers than `options.layers` names. Of
/// weights without a mask all are nonzeros. *Errors:* ConfigError on globs that match no layer.
KeptUnits living_units(const ModelUnits& units, const ShrinkOptions& options = {});

}  // namespace lacuna
