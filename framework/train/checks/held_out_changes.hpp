// The validation split that a run has held out of its training examples, and what would make it
// another one.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// The first key by which the splits that `now` holds out of the training data are others than
/// those of `run`, so that examples that were trained on would be among them: one of its type's
/// DatasetType::split_keys. Empty where they are the same, where nothing is held out, and where the
/// data is of another type. Both are whole configurations, of which `run` is resolved; neither is
/// marked as read. That files have changed is not seen.
std::string changed_split_key(const Config& run, const Config& now);

/// Whether `now` gives a file instead of the part of the run's own text that was its test split:
/// without that part the run's validation split would lie elsewhere.
bool replaces_own_test_split(const Config& run, const Config& now);

}  // namespace lacuna
