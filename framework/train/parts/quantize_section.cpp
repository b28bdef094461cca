#include "lacuna/framework/train/parts/quantize_section.hpp"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/quantize/int8_candidates.hpp"

namespace lacuna {

void read_quantize_section(ExperimentBuild& b) {
  if (b.e.config.has("quantize")) QuantizeOptions::from_config(b.e.config.get("quantize"));
}

void check_quantize_section(ExperimentBuild& b) {
  if (!b.e.config.has("quantize")) return;
  const Config section = b.e.config.get("quantize");
  const QuantizeOptions options = QuantizeOptions::from_config(section);
  const int64_t examples = options.calibration.examples.value_or(1), there = b.e.data.train->size();
  if (examples > there) {
    section.get("calibration")
        .error(fmt::format(
            "{} examples are asked for, and the training data has {}; give at most that many",
            examples, there));
  }
  at_position(section, [&] { return int8_candidates(*b.e.model, options); });
}

}  // namespace lacuna
