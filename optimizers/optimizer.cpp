#include "lacuna/optimizers/optimizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"
#include "lacuna/framework/param/row_gradient.h"
#include "lacuna/optimizers/row_update.hpp"

namespace lacuna {
namespace {

std::string in_words(double value) { return Config(value).text(); }

// Only a constant can be checked ahead; schedules are checked at each step.
void require_lr(const std::string& key, const Schedule& lr) {
  if (lr.is_constant()) require_option_at_least(key, lr.value_at(0), 0.0);
}

// The kind of a parameter, as in `no_decay`; empty for weights.
std::string_view kind_of(const Parameter& parameter) {
  const std::string& name = parameter.name();
  if (name == "bias" || name.ends_with(".bias")) return "bias";
  if (parameter.use == WeightUse::Embedding) return "embedding";
  return parameter.shape().rank() == 1 ? "norm" : "";
}

// A state that was asked to stay dense is not in step with nonzeros that are stored alone.
void require_aligned(const Parameter& parameter, const std::string& name, const Tensor& state) {
  if (state.numel() == parameter.pattern()->stored_size()) return;
  throw StateError(
      fmt::format("state '{}' of parameter '{}' is kept dense, which layout '{}' cannot store: "
                  "give the sparsity algorithm layout: masked",
                  name, parameter.name(), parameter.pattern()->layout().name()));
}

// Whether a step changes the parameter.
bool is_trained(const Parameter& parameter) {
  return parameter.trainable && parameter.has_gradient();
}

// The gradient as it is kept: of all rows, or of those used.
std::span<const float> kept_gradient(const Parameter& parameter) {
  const RowGradient* rows = parameter.row_gradient();
  return rows != nullptr ? rows->values.storage() : parameter.gradient().storage();
}

}  // namespace

void require_option_at_least(const std::string& key, double value, double low) {
  if (!(value >= low && std::isfinite(value))) {
    throw OptionError(key, "expected a finite number of at least " + in_words(low) + ", found " +
                               in_words(value));
  }
}

void require_option_fraction(const std::string& key, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    throw OptionError(key, "expected a number from 0 to below 1, found " + in_words(value));
  }
}

Optimizer::Optimizer(std::vector<ParameterPtr> parameters, const OptimizerOptions& options)
    : parameters_(std::move(parameters)),
      warmup_(options.warmup),
      clip_norm_(options.clip_norm),
      groups_{{options.lr, options.weight_decay}},
      group_of_(parameters_.size(), 0),
      steps_of_(parameters_.size(), 0),
      has_begun_(parameters_.size(), false),
      ages_of_(parameters_.size()) {
  require_lr("lr", options.lr);
  require_option_at_least("weight_decay", options.weight_decay, 0.0);
  require_option_at_least("warmup", static_cast<double>(warmup_), 0.0);
  if (warmup_ > kMostInteger) {
    throw OptionError("warmup",
                      fmt::format("expected at most {} steps, found {}", kMostInteger, warmup_));
  }
  if (clip_norm_ && !(*clip_norm_ > 0.0)) {
    throw OptionError("clip_norm", "expected a number above 0, found " + in_words(*clip_norm_));
  }
  if (parameters_.empty()) throw StateError("an optimizer needs at least one parameter");
  std::set<std::string_view> names;
  for (const ParameterPtr& parameter : parameters_) {
    if (parameter == nullptr) {
      throw StateError("the optimizer was given a parameter whose pointer is null");
    }
    if (!names.insert(parameter->name()).second) {
      throw StateError("the optimizer was given two parameters named '" + parameter->name() +
                       "'; their states could not be told apart");
    }
  }
  for (size_t g = 0; g < options.groups.size(); ++g) {
    add_group(options.groups[g], fmt::format("groups.{}", g));
  }
  choose_decays(options.no_decay);
}

void Optimizer::add_group(const ParameterGroup& group, const std::string& key) {
  if (group.lr) require_lr(key + ".lr", *group.lr);
  if (group.weight_decay) require_option_at_least(key + ".weight_decay", *group.weight_decay, 0.0);
  if (group.params.empty()) throw OptionError(key + ".params", "expected at least one glob");
  for (const std::string& glob : group.params) {
    std::vector<std::string> names;
    bool matches = false;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      names.push_back(parameters_[i]->name());
      if (!glob_match(glob, names.back())) continue;
      matches = true;
      if (group_of_[i] == 0) group_of_[i] = groups_.size();
    }
    if (!matches) {
      throw OptionError(key + ".params",
                        "'" + glob + "' matches no parameter; " + suggest_name(glob, names));
    }
  }
  groups_.push_back({group.lr.value_or(groups_[0].lr),
                     group.weight_decay.value_or(groups_[0].weight_decay),
                     group.weight_decay.has_value(), group.lr.has_value()});
}

void Optimizer::choose_decays(const std::vector<std::string>& no_decay) {
  static const std::vector<std::string> kinds = {"bias", "norm", "embedding"};
  for (size_t i = 0; i < no_decay.size(); ++i) {
    if (std::ranges::find(kinds, no_decay[i]) != kinds.end()) continue;
    throw OptionError(fmt::format("no_decay.{}", i), "unknown kind of parameter '" + no_decay[i] +
                                                         "'; " + suggest_name(no_decay[i], kinds));
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Group& group = groups_[group_of_[i]];
    const std::string_view kind = kind_of(*parameters_[i]);
    const bool is_spared =
        !group.has_own_decay && std::ranges::find(no_decay, kind) != no_decay.end();
    decay_of_.push_back(is_spared ? 0.0 : group.weight_decay);
  }
}

HookHandle Optimizer::register_step_pre_hook(std::function<void(Optimizer&)> hook) {
  return step_pre_hooks_.add(std::move(hook));
}

HookHandle Optimizer::register_step_scope_hook(
    std::function<void(Optimizer&, StepScopes& scopes)> hook) {
  return step_scope_hooks_.add(std::move(hook));
}

HookHandle Optimizer::register_step_post_hook(std::function<void(Optimizer&)> hook) {
  return step_post_hooks_.add(std::move(hook));
}

HookHandle Optimizer::register_zero_grad_hook(std::function<void(Optimizer&)> hook) {
  return zero_grad_hooks_.add(std::move(hook));
}

double Optimizer::learning_rate(const Group& group) const {
  const double lr = group.lr.value_at(steps_, steps_);
  if (steps_ >= warmup_) return lr;
  return lr * (static_cast<double>(steps_ + 1) / static_cast<double>(warmup_));
}

void Optimizer::clip_gradients(double max_norm) {
  double squares = 0.0;
  for (const ParameterPtr& parameter : parameters_) {
    if (is_trained(*parameter)) squares += sum_of_squares(kept_gradient(*parameter));
  }
  // The small number is PyTorch's. As in PyTorch, a norm that is NaN fails the comparison, so the
  // NaN spreads.
  const double factor = max_norm / (std::sqrt(squares) + 1e-6);
  if (factor >= 1.0) return;
  for (const ParameterPtr& parameter : parameters_) {
    if (!is_trained(*parameter)) continue;
    const bool was_pruned = parameter->is_pruned();
    RowGradient* const rows = parameter->mutable_row_gradient();
    Tensor& gradient = rows != nullptr ? rows->values : parameter->mutable_gradient();
    scale(static_cast<float>(factor), gradient.mutable_storage());
    if (was_pruned && std::isfinite(factor)) parameter->mark_pruned();
  }
}

UpdateFactors Optimizer::factors_of(size_t index) const {
  if (factors_ == nullptr) return {};
  UpdateFactors factors = factors_(*parameters_[index]);
  const Group& group = groups_[group_of_[index]];
  if (group.has_own_lr) factors.lr = 1.0;
  if (group.has_own_lr || group.has_own_decay) factors.weight_decay = 1.0;
  return factors;
}

UpdateFactors Optimizer::factors(const Parameter& parameter) const {
  return factors_of(index_of(parameter));
}

size_t Optimizer::index_of(const Parameter& parameter) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].get() == &parameter) return i;
  }
  throw StateError("the optimizer does not train the parameter '" + parameter.name() + "'");
}

void Optimizer::begin_states(const Parameter& parameter) { begin_states(index_of(parameter)); }

void Optimizer::begin_states(size_t index) {
  if (has_begun_[index]) return;
  has_begun_[index] = true;
  Parameter& parameter = *parameters_[index];
  for (const StateSlot& state : state_slots()) {
    if (!std::as_const(parameter).slots().contains(state.name)) continue;
    Slot& slot = parameter.slots().at(state.name);
    if (slot.requires_dense) {  // an algorithm asked for that
      std::ranges::fill(slot.values.mutable_storage(), 0.0F);
    } else {
      parameter.slots().erase(state.name);
    }
  }
}

void Optimizer::update_parameter(size_t index, double learning_rate,
                                 const std::vector<StateSlot>& slots) {
  Parameter& parameter = *parameters_[index];
  const ProfileSpan span(Work::Parameter, parameter.name());
  begin_states(index);
  const bool was_pruned = parameter.is_pruned();
  std::vector<std::span<float>> states;
  for (const StateSlot& slot : slots) {
    Tensor& state =
        slot.requires_dense ? parameter.dense_slot(slot.name).values : parameter.slot(slot.name);
    if (!slot.requires_dense) require_aligned(parameter, slot.name, state);
    states.push_back(state.mutable_storage());
  }
  const UpdateFactors factors = factors_of(index);
  std::span<uint16_t> ages;
  if (most_age() > 0 && !(ages_of_[index].empty() && parameter.pattern()->is_dense())) {
    // If no ages were kept before, all weights have the age of the parameter. So have the weights
    // of a parameter that has been dense so far.
    const int64_t first = std::min(steps_of_[index], most_age());
    ages = ages_of_[index].aligned_to(parameter.pattern(), first);
  }
  const Update work{.parameter = parameter,
                    .values = parameter.mutable_values().mutable_storage(),
                    .gradient = kept_gradient(parameter),
                    .states = states,
                    .learning_rate = learning_rate * factors.lr,
                    .weight_decay = decay_of_[index] * factors.weight_decay,
                    .eps_factor = factors.eps,
                    .step = ++steps_of_[index],
                    .ages = ages};
  if (const RowGradient* rows = parameter.row_gradient()) {
    update_rows(work, rows->rows);
  } else {
    update(work);
  }
  if (was_pruned && keeps_zeros(work)) parameter.mark_pruned();
}

// The same update of these rows, brought together: it is elementwise.
void Optimizer::update_rows(const Update& whole, std::span<const int64_t> rows) {
  if (rows.empty()) return;
  const int64_t columns = matrix_columns(whole.parameter.shape());
  GatheredRows<float> values(whole.values, rows, columns);
  std::vector<GatheredRows<float>> states;
  for (const std::span<float> state : whole.states) states.emplace_back(state, rows, columns);
  std::vector<std::span<float>> state_spans;
  for (GatheredRows<float>& state : states) state_spans.push_back(state.elements());
  GatheredRows<uint16_t> ages(whole.ages, rows, columns);
  const Update part{.parameter = whole.parameter,
                    .values = values.elements(),
                    .gradient = whole.gradient,
                    .states = state_spans,
                    .learning_rate = whole.learning_rate,
                    .weight_decay = whole.weight_decay,
                    .eps_factor = whole.eps_factor,
                    .step = whole.step,
                    .ages = ages.elements()};
  update(part);
  values.put_back();
  for (GatheredRows<float>& state : states) state.put_back();
  ages.put_back();
}

// The learning rate of each group at this step.
std::vector<double> Optimizer::checked_learning_rates() const {
  std::vector<double> rates;
  for (const Group& group : groups_) {
    rates.push_back(learning_rate(group));
    if (!(rates.back() >= 0.0 && std::isfinite(rates.back()))) {
      throw ConfigError(fmt::format(
          "the learning-rate schedule gives {} at step {}; expected a finite number of at least 0",
          in_words(rates.back()), steps_));
    }
  }
  return rates;
}

void Optimizer::step() {
  const std::vector<double> rates = checked_learning_rates();
  step_pre_hooks_.call(*this);
  {
    StepScopes scopes;
    step_scope_hooks_.call(*this, scopes);
    if (clip_norm_) clip_gradients(*clip_norm_);
    const std::vector<StateSlot> slots = state_slots();
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (is_trained(*parameters_[i])) update_parameter(i, rates[group_of_[i]], slots);
    }
    for (const std::unique_ptr<StepScope>& scope : scopes) scope->commit();
  }
  ++steps_;
  step_post_hooks_.call(*this);
  if (most_age() == 0) return;
  // Masks have changed. The next step must see the same state that is saved now: a position that is
  // dropped and grown again before the next step counts as new.
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (ages_of_[i].empty() || keeps_whole_ages(*parameters_[i])) continue;
    ages_of_[i].aligned_to(parameters_[i]->pattern(), 0);
  }
}

void Optimizer::zero_grad() {
  for (const ParameterPtr& parameter : parameters_) parameter->zero_gradient();
  zero_grad_hooks_.call(*this);
}

}  // namespace lacuna
