// `lacuna prune` with a section `quantize`: mask and grid at once.
#pragma once

#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/quantize/quantize_options.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/sparsity/one_shot_pruning.h"

namespace lacuna {

/// Has the pruned ones of the linear layers that the section quantizes brought to their grids as
/// they are pruned. *Errors:* ConfigError at the section.
void prune_to_grids(const Experiment& e, const std::vector<OneShotPruning*>& algorithms);

/// A pruned model brought to int8.
struct PrunedInt8 {
  StateDict state;  ///< of the quantized run
  Config report;    ///< quantize.json's, without `checkpoint` and `step`
};

/// Quantizes what prune_to_grids has pruned: those weights keep their values, the others of the
/// section are quantized by it, and activations get their grids. *Errors:* as quantize_model.
PrunedInt8 quantize_pruned(const Experiment& e, const std::vector<OneShotPruning*>& algorithms);

}  // namespace lacuna
