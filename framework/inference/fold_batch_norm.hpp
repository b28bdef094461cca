// Batch normalizations folded into the weights before them, for inference.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

class BatchNorm;

/// Folds each batch_norm that is given the output of a linear or convolution layer, and alone is
/// given it, into that layer: W' = W γ / √(σ² + ε) by row of the weight, in whatever layout it is
/// stored, and b' = (b − μ) γ / √(σ² + ε) + β, where a layer without a bias gets one. What the
/// model gives in evaluation mode differs by rounding alone. Returns how many were folded. *Left as
/// they are:* a batch_norm with anything else before it (another layer, the beginning of a branch,
/// or of what a module of a user's runs); one behind a linear layer whose examples have more
/// dimensions than one, because the channels are not that layer's outputs; one without running
/// statistics; one whose input, or the output before it, is transformed; one behind a weight or a
/// bias that several layers share. *Shapes:* `example` is what the model is given, without the
/// batch. *Lifetime:* the model is for inference from then on: training, saving and loading it are
/// StateErrors. *Errors:* ShapeError where the model does not take such examples. *Cost:* one pass
/// over these weights.
int64_t fold_batch_norm(Module& model, const Shape& example);

/// The batch_norms to whose inputs the outputs of a layer are added and nothing else reads them, by
/// the weights of these layers: those that fold_batch_norm would fold, and those behind dropout or
/// the sum of a residual. The model stays as it is. *Errors:* as there.
std::map<const Parameter*, const BatchNorm*> batch_norms_after(Module& model, const Shape& example);

/// γ / √(σ² + ε) for each row of the weights that fold_batch_norm would change, by their names. The
/// model stays as it is. *Errors:* as there.
std::map<std::string, std::vector<double>> batch_norm_factors(Module& model, const Shape& example);

}  // namespace lacuna
