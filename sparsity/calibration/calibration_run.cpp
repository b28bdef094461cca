#include "lacuna/sparsity/calibration/calibration_run.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"

namespace lacuna {

CalibrationRun calibration_run(const CalibrationData& data, CalibrationOptions options,
                               std::string_view who) {
  if (options.examples.value_or(1) > data.examples) {
    throw ConfigError(fmt::format(
        "{}: calibration.examples is {}, and the training data has {}; give at most that many", who,
        options.examples.value_or(1), data.examples));
  }
  options.examples =
      options.examples.value_or(std::min(data.examples, CalibrationOptions::kDefaultExamples));
  return [run = data.run, options](Module& model) { run(model, options); };
}

}  // namespace lacuna
