// Weights of losses where classes have unequal numbers of examples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// n / (K · n_c) for each class c with n_c > 0 labels, where n is their sum and K the number of
/// such classes; 1 for the others. The mean over the labels is 1. *Source:* scikit-learn's
/// class_weight="balanced".
std::vector<double> balanced_class_weights(std::span<const int64_t> counts);

/// `class_weights` of a loss, a list or `balanced`, which is measured on the examples whose label
/// is not `ignored` and becomes a list in the configuration. Empty where it is not given. *Errors:*
/// ConfigError on a list that is not of a weight for each class, and on `balanced` where examples
/// have no label each.
std::vector<float> read_class_weights(const Config& loss, const Dataset& data,
                                      std::optional<int64_t> ignored);

/// `pos_weight` of a loss: a number, a list of one for each of the outputs, or `balanced`: then (n
/// − p) / p for the sum p of an output's n targets, which becomes a list in the configuration.
/// Empty where it is not given. *Errors:* ConfigError on another value, and on `balanced` where
/// targets of an output are all 0 or all 1.
std::vector<float> read_pos_weights(const Config& loss, const Dataset& data, int64_t outputs);

}  // namespace lacuna
