// What is done with files of other tools that are not read.
#pragma once

#include <string>

#include "lacuna/framework/core/error.h"

namespace lacuna {

/// Throws the CheckpointError for a file that could not be read because of `error`: with what to do
/// where it holds pickles, or a model of another tool.
[[noreturn]] void refuse_unreadable(const std::string& file, const DataError& error);

}  // namespace lacuna
