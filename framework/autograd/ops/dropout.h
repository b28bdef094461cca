// Dropout as an operation.
#pragma once

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/random.h"

namespace lacuna {

/// y = x · (0 with probability p, else 1 / (1 − p)), each element by its own random word of the
/// sequence. *Shapes:*
/// any, kept; the storage order is kept too. Backward needs a bit an element, which is saved.
/// `first_example`: examples of the batch before these, where x is a part of one (core/shards.h):
/// each element's word is that of its place in the batch. *Errors:* ConfigError unless p is in [0,
/// 1). *Source:* Srivastava et al., JMLR 15 (2014).
Variable dropout(const Variable& x, double p, const CounterRng& rng, int64_t first_example = 0);

}  // namespace lacuna
