#include "lacuna/sparsity/calibration/calibration_run.hpp"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

std::string too_few(int64_t examples, int64_t there) {
  return calibration_needs(examples, there) + "; give at most that many";
}

}  // namespace

CalibrationRun calibration_run(const CalibrationData& data, const CalibrationOptions& given,
                               std::string_view who) {
  const CalibrationOptions options = given.completed(data.examples, data.batch_size);
  if (*options.examples > data.examples) {
    throw ConfigError(fmt::format("{}: {}", who, too_few(*options.examples, data.examples)));
  }
  return [run = data.run, options](Module& model) { run(model, options); };
}

Config calibration_place(const Config& section) {
  const Config calibration = section.peek("calibration");
  if (calibration.is_null()) return section;
  if (!calibration.is_map()) return calibration;
  for (const char* key : {"batches", "examples"}) {
    if (const Config count = calibration.peek(key); !count.is_null()) return count;
  }
  return calibration;
}

CalibrationOptions calibration_on(const Config& section, const CalibrationOptions& given,
                                  int64_t there, int64_t batch_size) {
  const CalibrationOptions all = given.completed(there, batch_size);
  if (*all.examples > there) calibration_place(section).error(too_few(*all.examples, there));
  return all;
}

}  // namespace lacuna
