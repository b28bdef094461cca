// What a schedule of updates will do, as far as it can be counted before any training.
#include <fmt/core.h>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/dynamic.h"
#include "lacuna/sparsity/weights/target_checks.hpp"

namespace lacuna {
namespace {

// "cosine" of a map with that `type`; empty for numbers and lists.
std::string schedule_type(const Config& schedule) {
  return schedule.is_map() ? to_lower(schedule.get("type").text()) : "";
}

}  // namespace

void DynamicSparsityAlgorithm::forecast(Forecast& forecast) const {
  SparsityAlgorithm::forecast(forecast);
  const std::vector<int64_t> update_steps = planned_updates(forecast.steps);
  check_schedules(update_steps, forecast.steps);
  if (options().drop_fraction) check_drop_fraction(*options().drop_fraction, update_steps);
  const std::vector<Shape> shapes = forecast.shapes();
  int64_t made = update_schedule().is_update(0) ? 1 : 0;
  for (const int64_t step : update_steps) {
    require_fraction(type(), options().sparsity, step, made);
    const std::vector<int64_t> targets = options().targets_at(step, made, shapes);
    for (size_t i = 0; i < targets.size(); ++i) {
      const MaskSelector selector(options().groups, options().pattern, shapes[i]);
      PlannedParameter& planned = forecast.parameters[i];
      const int64_t before = planned.final_nnz;
      planned.final_nnz =
          nnz_after_update(selector, before, targets[i], drop_fraction_at(step, made));
      if (planned.final_nnz != before) planned.changes.push_back({step, planned.final_nnz});
    }
    ++made;
  }
  for (PlannedParameter& parameter : forecast.parameters) parameter.update_steps = update_steps;
}

std::vector<int64_t> DynamicSparsityAlgorithm::planned_updates(int64_t steps) const {
  constexpr int64_t kLongest = 10'000'000;  // an update at each is 80 MB of plan
  if (steps > kLongest) {
    throw ConfigError(fmt::format("{}: a run of {} steps is longer than can be planned ({})",
                                  type(), steps, kLongest));
  }
  std::vector<int64_t> update_steps;
  for (int64_t step = 1; step <= steps; ++step) {
    if (update_schedule().is_update(step)) update_steps.push_back(step);
  }
  return update_steps;
}

// What can only be a mistake: the plan would be carried out, and not do what was meant.
void DynamicSparsityAlgorithm::check_schedules(const std::vector<int64_t>& updates,
                                               int64_t steps) const {
  const std::string name(type());
  if (updates.empty()) {
    throw ConfigError(fmt::format(
        "{}: no update falls within its {} steps; look at update.freq, start and stop, or every",
        name, steps));
  }
  const int64_t last = updates.back();
  const Config sparsity = options().sparsity.schedule().config();
  const std::string type = schedule_type(sparsity);
  const char* end_key = type == "polynomial" ? "end" : type == "cosine" ? "half_period" : nullptr;
  if (end_key != nullptr && static_cast<double>(last) < sparsity.required<double>(end_key)) {
    throw ConfigError(
        fmt::format("{}: the sparsity schedule ({}) ends at step {}, after the last update at step "
                    "{}: its final value is never reached",
                    name, type, sparsity.get(end_key).text(), last));
  }
}

// A fraction that is none, or that climbs again.
void DynamicSparsityAlgorithm::check_drop_fraction(const Schedule& given,
                                                   const std::vector<int64_t>& updates) const {
  const std::string name(type());
  const int64_t last = updates.back();
  int64_t made = update_schedule().is_update(0) ? 1 : 0;
  for (const int64_t step : updates) {
    constexpr float kRounding = 1e-5f;
    const float fraction = given.at(step, made++);
    if (fraction >= -kRounding && fraction <= 1.0f + kRounding) continue;
    throw ConfigError(
        fmt::format("{}: the drop_fraction is {} at step {}, expected a fraction from 0 to 1", name,
                    Config(fraction).text(), step));
  }
  const Config drop = given.config();
  if (schedule_type(drop) == "cosine" &&
      drop.required<double>("half_period") < static_cast<double>(last)) {
    throw ConfigError(fmt::format(
        "{}: the cosine drop_fraction climbs again after its half_period of {} steps, and updates "
        "last until step {}; give the larger of both, or stop updates earlier",
        name, drop.get("half_period").text(), last));
  }
}

}  // namespace lacuna
