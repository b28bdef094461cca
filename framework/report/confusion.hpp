// The confusion matrix of a run, as confusion.json of its folder has it.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Up to 30 classes as a matrix, rows with the true class and columns with the predicted one, the
/// darker the larger a row's share; of more the pairs that are confused most often. Empty where
/// `confusion` is null or is no matrix.
std::string html_confusion(const Config& confusion, const std::string& id);

}  // namespace lacuna
