#include "lacuna/sparsity/calibration/calibration_run.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"

namespace lacuna {

CalibrationRun calibration_run(const CalibrationData& data, const CalibrationOptions& given,
                               std::string_view who) {
  const CalibrationOptions options = given.completed(data.examples, data.batch_size);
  if (*options.examples > data.examples) {
    throw ConfigError(fmt::format("{}: {}; give at most that many", who,
                                  calibration_needs(*options.examples, data.examples)));
  }
  return [run = data.run, options](Module& model) { run(model, options); };
}

}  // namespace lacuna
