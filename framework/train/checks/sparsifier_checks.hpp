// Whether sparsifiers of activations take the batches of a run, found out before the first step.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Where batches come from: "the last batch of evaluation", and the key that sets their size.
struct BatchOrigin {
  std::string name, key;
};

/// Runs a batch of zeros of each size through the model, in evaluation mode; `section` is
/// `sparsifiers`. *Errors:* ConfigError, with the batch, where a sparsifier does not take its
/// shape; Error that names the key of its size where there is no memory for it.
void require_sparsifiers_fit(Module& model, const Config& section, const Dataset& data,
                             const std::map<int64_t, BatchOrigin>& batches);

}  // namespace lacuna
