// The scale of attention put into weights, for files that have no place for it.
#pragma once

#include "lacuna/framework/interop/load_run.h"

namespace lacuna {

/// Multiplies the queries' weights and biases before each attention layer to which
/// `model.attention_scale` gives its scale by that scale · √d, so that the model computes with 1/√d
/// what it computed with its own: what is exported then has the usual scale. Nothing without the
/// key. *Errors:* ConfigError at an attention layer before which no linear layer stands.
void fold_attention_scale(const LoadedRun& run);

}  // namespace lacuna
