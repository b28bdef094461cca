// Places in a run as people write them ("75 %", "3 epochs"), and schedules that last until its end.
#pragma once

#include <cstdint>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// How long a run, or a phase of one, is.
struct RunLength {
  int64_t steps = 0;
  int64_t steps_per_epoch = 1;
};

/// Writes steps where a section has "500 steps", "3 epochs" (0.5 epochs, too), or, under the keys
/// of schedules that count steps (`half_period`, `start`, `stop`, `end`, `milestones`, `freq`,
/// `steps`, `every`, `until`, `warmup`), "75 %" of the run. What is above 0 is at least one step.
/// *Errors:* ConfigError at a negative value, or at more than 100 %.
void resolve_positions(const Config& section, const RunLength& length);

/// Gives a cosine without a period, or a polynomial without its ends, the steps from `start` to
/// `end`; a cosine then stays at its minimum (`cosine_once`). Anything else stays as it is.
void complete_schedule(Config schedule, int64_t start, int64_t end);

/// The same of the learning rates in an `optimizer` section: from the end of the warmup to the
/// run's end; and its positions.
void complete_optimizer(const Config& optimizer, const RunLength& length);

}  // namespace lacuna
