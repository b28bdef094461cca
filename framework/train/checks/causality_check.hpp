// Labels that are the next tokens must not be seen by the tokens that predict them.
#pragma once

#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/sequential.h"

namespace lacuna {

/// Where the labels are the next tokens: the outputs of a token must not depend on later ones, or
/// the model reads its labels. Tried with the first example and another last token, in evaluation
/// mode, layer by layer. *Errors:* ConfigError at the first outermost layer whose outputs of
/// earlier tokens change. *Cost:* a pass of two examples.
void require_causality(Sequential& model, const ModelLayers& layers, const Dataset& data);

}  // namespace lacuna
