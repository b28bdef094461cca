// Labels that do not count, by `loss.ignore_index`.
#pragma once

#include <cstdint>

#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// The same splits, in which that label is kIgnoredLabel: it adds nothing to loss, gradient or
/// accuracy. *Cost:* a look at the labels of each batch.
DataSplits with_ignored_label(DataSplits splits, int64_t label);

}  // namespace lacuna
