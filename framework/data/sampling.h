// Sampling: how often an epoch draws each training example, and the labels that this depends on.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"

namespace lacuna {

enum class Sampling {
  Once,      ///< each example once
  Balanced,  ///< each class equally often; an epoch has as many examples as the data
};

/// `data.sampling`: once (the default) or balanced. *Errors:* ConfigError on another name, and on
/// `balanced` for examples that have no class each.
Sampling read_sampling(const Config& data, const Dataset& train);

/// Whether each example has one class.
bool has_example_labels(const Dataset& data);

/// The label of each example. *Requires* has_example_labels(). *Cost:* one pass over the labels;
/// for datasets that do not override Dataset::labels_of, also over the inputs.
std::vector<int64_t> all_labels(const Dataset& data);

}  // namespace lacuna
