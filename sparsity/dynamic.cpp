#include "lacuna/sparsity/dynamic.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"

namespace lacuna {
namespace {

SparsityOptions common_options(DynamicOptions& o) {
  return {.sparsity = std::move(o.sparsity),
          .init_method = std::move(o.init_method),
          .param_filter = std::move(o.param_filter),
          .groups = o.groups,
          .structure = o.structure,
          .distribution = o.distribution,
          .layout = std::move(o.layout),
          .seed = o.seed};
}

// "cosine" of a map with that `type`; empty for numbers and lists.
std::string schedule_type(const Config& schedule) {
  return schedule.is_map() ? to_lower(schedule.get("type").text()) : "";
}

}  // namespace

DynamicOptions DynamicOptions::from_config(const Config& entry, uint64_t seed) {
  SparsityOptions common = SparsityOptions::from_config(entry, seed);
  return {.sparsity = std::move(common.sparsity),
          .init_method = std::move(common.init_method),
          .param_filter = std::move(common.param_filter),
          .groups = common.groups,
          .structure = common.structure,
          .distribution = common.distribution,
          .layout = std::move(common.layout),
          .seed = seed,
          .update = UpdateSchedule::from_config(entry.get("update")),
          .drop_fraction = std::nullopt};
}

DynamicSparsityAlgorithm::DynamicSparsityAlgorithm(DynamicOptions options)
    : SparsityAlgorithm(common_options(options)),
      update_schedule_(std::move(options.update)),
      drop_fraction_(options.drop_fraction.value_or(Schedule(0.3))),
      keep_alive_(options.keep_alive) {
  if (keep_alive_ && this->options().structure.exists()) {
    throw ConfigError("keep_alive does not go with a pattern (" +
                      this->options().structure.description() + ")");
  }
}

DynamicSparsityAlgorithm::~DynamicSparsityAlgorithm() { DynamicSparsityAlgorithm::release(); }

void DynamicSparsityAlgorithm::release() {
  forward_hook_.remove();
  stop_observing();
  SparsityAlgorithm::release();
}

void DynamicSparsityAlgorithm::on_apply(Module& module) {
  if (update_schedule_.is_update(0)) count_update();  // the first masks are the first update
  forward_hook_ = module.register_forward_pre_hook([this](Module&) {
    if (grad_enabled() && wants_dense_gradient(step() + 1)) observe_gradients();
  });
}

Positions DynamicSparsityAlgorithm::initial_positions(const Parameter& parameter) {
  if (!update_schedule_.is_update(0)) return Positions::all(parameter.shape());
  return SparsityAlgorithm::initial_positions(parameter);
}

void DynamicSparsityAlgorithm::update(Optimizer&) {
  count_step();
  if (!update_schedule_.is_update(step())) return;
  refresh_targets();
  for (const ParameterPtr& parameter : parameters()) update_parameter(*parameter);
  count_update();
  stop_observing();
}

void DynamicSparsityAlgorithm::update_parameter(Parameter& parameter) {
  const Positions present = parameter.pattern()->positions();
  const auto sparsity = static_cast<float>(target_sparsity(parameter));
  set_positions(parameter, update_positions(parameter, present, sparsity), present);
}

void DynamicSparsityAlgorithm::require_bits(const Parameter& parameter) const {
  constexpr int64_t kMost = int64_t{1} << 32;
  if (parameter.numel() <= kMost) return;
  throw StateError("sparsity algorithm '" + std::string(type()) + "' works on masks, and '" +
                   parameter.name() + "' has " + std::to_string(parameter.numel()) +
                   " positions; above 2^32 override the pattern-level hook: update_positions of "
                   "DynamicPatternAlgorithm, or grow_positions of Set");
}

Positions DynamicSparsityAlgorithm::update_positions(const Parameter& parameter,
                                                     const Positions& present, float sparsity) {
  require_bits(parameter);
  return Positions::of(parameter.shape(), update_mask(parameter, present.to_mask(), sparsity));
}

BitMask DynamicPatternAlgorithm::update_mask(const Parameter& parameter, const BitMask& mask,
                                             float sparsity) {
  return update_positions(parameter, Positions::of(parameter.shape(), mask), sparsity).to_mask();
}

void DynamicSparsityAlgorithm::observe_gradients() {
  if (!gradients_.empty()) return;  // an earlier micro-batch of this step has asked already
  for (const ParameterPtr& parameter : parameters()) {
    auto observer = std::make_shared<DenseGradient>(use_of_dense_gradient());
    parameter->set_gradient_observer(observer);
    gradients_[parameter.get()] = std::move(observer);
  }
}

void DynamicSparsityAlgorithm::stop_observing() {
  for (const ParameterPtr& parameter : parameters()) {
    if (gradients_.contains(parameter.get())) parameter->set_gradient_observer(nullptr);
  }
  gradients_.clear();
}

DenseGradient& DynamicSparsityAlgorithm::collected(const Parameter& parameter) const {
  const auto found = gradients_.find(&parameter);
  if (found == gradients_.end() || !found->second->is_known()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' needs the dense gradient of '" + parameter.name() + "' at step " +
                     std::to_string(step()) +
                     ", which was not asked for before the forward pass: run forward and backward "
                     "through the module it was applied to, with wants_dense_gradient true for "
                     "this step");
  }
  return *found->second;
}

DenseGradient& DynamicSparsityAlgorithm::whole_gradient(const Parameter& parameter) const {
  constexpr int64_t kMost = int64_t{1} << 31;
  DenseGradient& gradient = collected(parameter);
  if (parameter.numel() > kMost) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' asks for the dense gradient of '" + parameter.name() + "', which has " +
                     std::to_string(parameter.numel()) +
                     " elements; above 2^31 read it by rows, with gradient_rows");
  }
  return gradient;
}

const Tensor& DynamicSparsityAlgorithm::dense_gradient(const Parameter& parameter) const {
  return whole_gradient(parameter).sum();
}

Tensor DynamicSparsityAlgorithm::take_dense_gradient(const Parameter& parameter) const {
  return whole_gradient(parameter).take_sum();
}

ScoreRows DynamicSparsityAlgorithm::gradient_rows(const Parameter& parameter) const {
  return [&gradient = collected(parameter)](std::span<const int64_t> rows, std::span<float> into) {
    gradient.rows(rows, into);
  };
}

float DynamicSparsityAlgorithm::drop_fraction_at(int64_t step, int64_t updates) const {
  return std::clamp(drop_fraction_.at(step, updates), 0.0f, 1.0f);
}

void DynamicSparsityAlgorithm::foresee(std::vector<PlannedParameter>& planned,
                                       int64_t steps) const {
  constexpr int64_t kLongest = 10'000'000;  // an update at each is 80 MB of plan
  if (steps > kLongest) {
    throw ConfigError(std::string(type()) + ": a run of " + std::to_string(steps) +
                      " steps is longer than can be planned (" + std::to_string(kLongest) + ")");
  }
  std::vector<int64_t> update_steps;
  for (int64_t step = 1; step <= steps; ++step) {
    if (update_schedule_.is_update(step)) update_steps.push_back(step);
  }
  check_schedules(update_steps, steps);
  std::vector<Shape> shapes;
  for (const PlannedParameter& parameter : planned) shapes.push_back(parameter.shape);
  int64_t made = update_schedule_.is_update(0) ? 1 : 0;
  for (const int64_t step : update_steps) {
    const std::vector<int64_t> targets = targets_at(step, made, shapes);
    for (size_t i = 0; i < planned.size(); ++i) {
      planned[i].final_nnz =
          nnz_after_update(planned[i].final_nnz, targets[i], options().groups.count, step, made);
    }
    ++made;
  }
  for (PlannedParameter& parameter : planned) parameter.update_steps = update_steps;
}

// What can only be a mistake: the plan would be carried out, and not do what was meant.
void DynamicSparsityAlgorithm::check_schedules(const std::vector<int64_t>& updates,
                                               int64_t steps) const {
  const std::string name(type());
  if (updates.empty()) {
    throw ConfigError(name + ": no update falls within its " + std::to_string(steps) +
                      " steps; look at update.freq, start and stop, or every");
  }
  const int64_t last = updates.back();
  const Config sparsity = options().sparsity.schedule().config();
  const std::string type = schedule_type(sparsity);
  const char* end_key = type == "polynomial" ? "end" : type == "cosine" ? "half_period" : nullptr;
  if (end_key != nullptr && static_cast<double>(last) < sparsity.required<double>(end_key)) {
    throw ConfigError(name + ": the sparsity schedule (" + type + ") ends at step " +
                      sparsity.get(end_key).text() + ", after the last update at step " +
                      std::to_string(last) + ": its final value is never reached");
  }
  if (!uses_drop_fraction()) return;
  int64_t made = update_schedule_.is_update(0) ? 1 : 0;
  for (const int64_t step : updates) {
    constexpr float kRounding = 1e-5f;
    const float fraction = drop_fraction_.at(step, made++);
    if (fraction >= -kRounding && fraction <= 1.0f + kRounding) continue;
    throw ConfigError(name + ": the drop_fraction is " + Config(fraction).text() + " at step " +
                      std::to_string(step) + ", expected a fraction from 0 to 1");
  }
  const Config drop = drop_fraction_.config();
  if (schedule_type(drop) == "cosine" &&
      drop.required<double>("half_period") < static_cast<double>(last)) {
    throw ConfigError(name + ": the cosine drop_fraction climbs again after its half_period of " +
                      drop.get("half_period").text() + " steps, and updates last until step " +
                      std::to_string(last) + "; give the larger of both, or stop updates earlier");
  }
}

}  // namespace lacuna
