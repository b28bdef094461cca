// The calibration run of an algorithm, from the data that it was given and its options.
#pragma once

#include <string_view>

#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// Runs on the number of examples that the options name; by default kDefaultExamples, or all if
/// there are fewer. *Errors:* ConfigError that begins with `who`, if there are not as many.
CalibrationRun calibration_run(const CalibrationData& data, const CalibrationOptions& given,
                               std::string_view who);

}  // namespace lacuna
