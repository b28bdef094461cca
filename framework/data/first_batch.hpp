// What the batches of a dataset hold, found by a look at its first example.
#pragma once

#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// Whether examples that are not tokens come with a tensor of that name, as those of
/// config/sparse_examples.h. Without examples: false. *Cost:* one example.
bool gives_tensor(const Dataset& data, const char* name);

}  // namespace lacuna
