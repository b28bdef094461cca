// Schedules: values (sparsity, drop fraction, learning rate) and update times as pure functions of
// the step. Nothing here has state, so there is nothing to save.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/registry.h"

namespace lacuna {

/// A value as a function of (step, number of updates so far), evaluated in float32. A constant
/// keeps its double precision.
class Schedule {
 public:
  using Function = std::function<float(int64_t step, int64_t updates)>;

  /// A constant.
  Schedule(double value);
  /// `function` is called with steps from 0 on; `config` is only reported.
  Schedule(Function function, Config config);

  /// The value at step ≥ 0. `updates` counts the updates made before this one; only `cycling`
  /// depends on it.
  float at(int64_t step, int64_t updates = 0) const { return function_(step, updates); }
  /// The same as a double: a constant keeps the precision it was given with.
  double value_at(int64_t step, int64_t updates = 0) const {
    return constant_ ? *constant_ : double{at(step, updates)};
  }

  bool is_constant() const { return constant_.has_value(); }
  /// The configuration it was made from, for messages and the resolved configuration.
  const Config& config() const { return config_; }

  /// number → constant; list → cycling; map → by its `type`. *Errors:* ConfigError.
  static Schedule from_config(const Config& config);

 private:
  Function function_;
  Config config_;
  std::optional<double> constant_;
};

/// Factories by `type`; users may add theirs.
using ScheduleRegistry = Registry<Schedule(const Config&)>;
ScheduleRegistry& schedule_registry();
/// Adds constant, linear, exp, power, cosine, cosine_once, cycling, polynomial, multi_step.
void register_schedules(ScheduleRegistry& registry);

/// When a dynamic algorithm updates: every `freq` steps in [start, stop), or at listed steps.
class UpdateSchedule {
 public:
  /// Every step.
  UpdateSchedule() = default;
  /// *Errors:* ConfigError unless freq ≥ 1 and start ≥ 0. With stop ≤ start there are no updates.
  static UpdateSchedule every(int64_t freq, int64_t start = 0,
                              std::optional<int64_t> stop = std::nullopt);
  /// In any order. *Errors:* ConfigError on a negative step.
  static UpdateSchedule at_steps(std::vector<int64_t> steps);
  /// null → every step; `{freq, start, stop}` or `{steps: […]}`. *Errors:* ConfigError.
  static UpdateSchedule from_config(const Config& config);

  /// The map that `from_config` reads it from: `{freq, start, stop}` or `{steps: […]}`.
  Config to_config() const;

  /// (t − start) mod freq = 0 and start ≤ t < stop; or t is listed.
  bool is_update(int64_t step) const;
  bool operator==(const UpdateSchedule&) const = default;

 private:
  int64_t freq_ = 1;
  int64_t start_ = 0;
  std::optional<int64_t> stop_;
  std::optional<std::vector<int64_t>> steps_;  // sorted
};

}  // namespace lacuna
