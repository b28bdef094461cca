// Inputs that are missing, which are NaN until they are filled in.
#pragma once

#include <vector>

#include "lacuna/framework/data/hold_out.hpp"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Replaces NaN by these, one for each feature. *Requires* float inputs.
void fill_missing(const std::vector<double>& fill, Examples& examples);

/// Fills in what is missing in all splits, by DataSplits::missing. What is measured
/// (DataSplits::fill) is so on the training examples that stay. *Errors:* DataError when a feature
/// is missing in all of these.
void fill_missing(DataSplits& splits, const HoldOut& parts);

}  // namespace lacuna
