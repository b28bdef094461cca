// Whether the classes of training data are what was meant.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// Numbers that are to be predicted, and not classes: of most of these there is no example.
/// *Errors:* ConfigError.
void require_plausible_labels(const Config& data, const Dataset& train);

/// `num_classes` says what the data has, where that is not for it to choose. *Errors:* ConfigError.
void require_number_of_classes(const Config& data, const Dataset& train);

/// Examples that stand in the order of their classes lose whole classes by a limit: a warning names
/// these. `staying` are the indices that are trained on. *Cost:* a look at each label.
void tell_lost_classes(const Config& data, const Dataset& train, std::span<const int64_t> staying);

}  // namespace lacuna
