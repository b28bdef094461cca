// The calibration run of an algorithm, from the data that it was given and its options, and the
// place of the options in a configuration.
#pragma once

#include <string_view>

#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// Runs on the number of examples that the options name; by default kDefaultExamples, or all if
/// there are fewer. *Errors:* ConfigError that begins with `who`, if there are not as many.
CalibrationRun calibration_run(const CalibrationData& data, const CalibrationOptions& given,
                               std::string_view who);

/// The value that sets the number of calibration examples of a section: `calibration.examples` or
/// `calibration.batches`, `calibration`, or the section itself if it has none of them.
Config calibration_place(const Config& section);

/// The options, which are those of the section, with all their numbers, where the training data has
/// `there` examples and batches of `batch_size`. *Errors:* ConfigError at `calibration_place` if
/// there are not as many examples.
CalibrationOptions calibration_on(const Config& section, const CalibrationOptions& given,
                                  int64_t there, int64_t batch_size);

}  // namespace lacuna
