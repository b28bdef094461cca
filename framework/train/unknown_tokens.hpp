// How much of a text its vocabulary lacks.
#pragma once

#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// Fraction of the tokens of all examples, without padding, that are [UNK]; NaN where there is no
/// such token. *Cost:* for windows of a text none (Dataset::unknown_labels); else up to 2²² tokens
/// of examples at even distances are gathered.
double share_of_unknown(const Dataset& data);

}  // namespace lacuna
