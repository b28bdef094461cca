// Updates of masks by a schedule; then what such a schedule will do, as far as it can be counted
// before any training.
#include "lacuna/sparsity/dynamic.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/sparsity/weights/target_checks.hpp"

namespace lacuna {

DynamicSparsityAlgorithm::DynamicSparsityAlgorithm(DynamicOptions given, PatternLifetime lifetime)
    : SparsityAlgorithm(std::move(given), lifetime) {
  if (keeps_alive() && options().pattern.is_structured()) {
    throw ConfigError("keep_alive cannot be combined with a pattern (" +
                      options().pattern.description() + "); leave one of them out");
  }
}

void DynamicSparsityAlgorithm::adopt(Module& module, std::vector<ParameterPtr> parameters,
                                     MaskSource source) {
  take_charge(std::move(parameters));
  begin(module, source, GradientRoute::Both);
}

void DynamicSparsityAlgorithm::begin(Module& module, MaskSource source, GradientRoute route) {
  if (update_schedule().is_update(0)) count_update();  // the first masks are the first update
  keep_hook(module.register_forward_pre_hook([this, route](Module&) {
    if (!grad_enabled() || !wants_dense_gradient(step() + 1)) return;
    for (SparseWeight& weight : weights()) {
      // An earlier micro-batch of this step may have asked already.
      if (!weight.is_watched()) weight.watch_gradient(route);
    }
  }));
  start_masks(source);
}

MaskSet DynamicSparsityAlgorithm::initial_mask(const SparseWeight& weight, MaskSource source) {
  const bool is_full = source == MaskSource::Made && !update_schedule().is_update(0);
  return is_full ? MaskSet::all(weight.shape()) : SparsityAlgorithm::initial_mask(weight, source);
}

UpdateSchedule DynamicSparsityAlgorithm::default_updates(int64_t steps) const {
  const int64_t freq = std::clamp<int64_t>(steps / 100, 1, 100);
  return UpdateSchedule::every(freq, 0, std::max(freq + 1, (3 * steps + 2) / 4));
}

void DynamicSparsityAlgorithm::set_drop_fraction(Schedule fraction) {
  SparsityOptions changed = options();
  changed.drop_fraction = std::move(fraction);
  set_options(changed);
}

void DynamicSparsityAlgorithm::update(Optimizer&) {
  count_step();
  if (!update_schedule().is_update(step())) return;
  const AtWork at_work(*this);  // also if called by hand
  refresh_targets();
  for (SparseWeight& weight : weights()) {
    const ProfileSpan span(Work::Parameter, weight.name());
    if (weight.master() != nullptr) weight.master()->take_part();
    const MaskSet present = weight.mask();
    const bool is_lost = weight.has_lost_pattern(present);
    if (is_lost) install(weight, initial_mask(weight, MaskSource::Inherited), &present);
    const MaskSet mask = is_lost ? weight.mask() : present;
    const PatternPtr pattern = weight.parameter().pattern();
    const MaskSet updated = update_mask(weight, mask, static_cast<float>(weight.target_sparsity()));
    // A user's update_mask may have set masks itself.
    const bool is_present = weight.parameter().pattern() == pattern;
    set_mask(weight, updated, is_present ? &mask : nullptr);
  }
  count_update();
  stop_watching();
}

void DynamicSparsityAlgorithm::stop_watching() {
  for (SparseWeight& weight : weights()) weight.stop_watching();
}

DenseGradient& DynamicSparsityAlgorithm::collected(const SparseWeight& weight) const {
  if (DenseGradient* gradient = weight.gradient()) return *gradient;
  throw StateError(
      fmt::format("sparsity algorithm '{}' needs the dense gradient of '{}' at step {}, which was "
                  "taken already, or not requested before the forward pass: run forward and "
                  "backward through the module it was applied to, with wants_dense_gradient true "
                  "for this step, and take the gradient once",
                  type(), weight.name(), step()));
}

DenseGradient& DynamicSparsityAlgorithm::whole_gradient(const SparseWeight& weight) const {
  constexpr int64_t kMost = int64_t{1} << 31;
  DenseGradient& gradient = collected(weight);
  if (weight.numel() > kMost) {
    throw StateError(
        fmt::format("sparsity algorithm '{}' needs the dense gradient of '{}', which has {} "
                    "elements; above 2^31 read it by rows, with gradient_rows",
                    type(), weight.name(), weight.numel()));
  }
  return gradient;
}

const Tensor& DynamicSparsityAlgorithm::dense_gradient(const SparseWeight& weight) const {
  return whole_gradient(weight).sum();
}

Tensor DynamicSparsityAlgorithm::take_dense_gradient(const SparseWeight& weight) const {
  return whole_gradient(weight).take_sum();
}

Scores DynamicSparsityAlgorithm::gradient_rows(const SparseWeight& weight) const {
  return collected(weight).scores();
}

CounterRng DynamicSparsityAlgorithm::rng(const SparseWeight& weight, const char* purpose) const {
  return CounterRng(options().seed, weight.name() + purpose, static_cast<uint64_t>(step()));
}

float DynamicSparsityAlgorithm::drop_fraction_at(int64_t step, int64_t updates) const {
  if (!options().drop_fraction) return 0.3f;
  return require_fraction(type(), "drop_fraction", options().drop_fraction->at(step, updates),
                          step);
}

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
  if (options().drop_fraction) check_drop_fraction(update_steps);
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
        "{}: no update falls within its {}; check update.freq, start and stop, or every", name,
        plural(steps, "step")));
  }
  const int64_t last = updates.back();
  const Config sparsity = options().sparsity.schedule().config();
  const std::string type = schedule_type(sparsity);
  double end = 0.0;
  if (type == "polynomial") {
    end = sparsity.required<double>("end");
  } else if (type == "cosine" || type == "cosine_once") {
    end =
        sparsity.optional<double>("start").value_or(0.0) + sparsity.required<double>("half_period");
  }
  if (static_cast<double>(last) < end) {
    throw ConfigError(
        fmt::format("{}: the sparsity schedule ({}) ends at step {}, after the last update at step "
                    "{}: its final value is never reached",
                    name, type, end, last));
  }
}

// A fraction that is none, or that rises again.
void DynamicSparsityAlgorithm::check_drop_fraction(const std::vector<int64_t>& updates) const {
  const int64_t last = updates.back();
  int64_t made = update_schedule().is_update(0) ? 1 : 0;
  for (const int64_t step : updates) drop_fraction_at(step, made++);
  const Config drop = options().drop_fraction->config();
  if (schedule_type(drop) == "cosine" &&
      drop.required<double>("half_period") < static_cast<double>(last)) {
    throw ConfigError(fmt::format(
        "{}: the cosine drop_fraction rises again after its half_period of {} steps, but updates "
        "continue until step {}; set half_period to at least {}, or stop the updates earlier",
        type(), drop.get("half_period").text(), last, last));
  }
}

}  // namespace lacuna
