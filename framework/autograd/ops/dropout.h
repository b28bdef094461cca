// Dropout as an operation.
#pragma once

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/random.h"

namespace lacuna {

/// y = x · (0 with probability p, else 1 / (1 − p)), each element by its own random word of
/// the sequence. *Shapes:* any, kept; the storage order is kept too. One bit per element is
/// saved for backward. `first_example`: number of examples before x in the batch if x is a
/// part of a batch (core/shards.h): the word of an element depends on its place in the
/// batch. *Errors:* ConfigError unless p is in [0, 1). *Source:* Srivastava et al., JMLR 15
/// (2014).
Variable dropout(const Variable& x, double p, const CounterRng& rng, int64_t first_example = 0);

}  // namespace lacuna
