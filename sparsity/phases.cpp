#include "lacuna/sparsity/phases.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

Phases::Phases(std::vector<Phase> phases) : SparsityAlgorithm({}), phases_(std::move(phases)) {
  if (phases_.empty()) throw ConfigError("phases: expected at least one");
  int64_t before = 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const auto& until = phases_[i].until;
    const bool last = i + 1 == phases_.size();
    const std::string name = fmt::format("phase {}", i);
    if (!last && !until) throw ConfigError(name + " needs `until`: only the last has no end");
    if (last && until)
      throw ConfigError(name +
                        ", the last one, lasts to the end of the run; "
                        "leave its `until` out");
    if (until && *until <= before) {
      throw ConfigError(
          fmt::format("{}: until must be a step after {}, found {}", name, before, *until));
    }
    before = until.value_or(0);
    if (phases_[i].algorithm == nullptr) {
      throw StateError(name + " was given no algorithm: the pointer is null");
    }
    SparsityAlgorithm& algorithm = *phases_[i].algorithm;
    // One with a single part may stand for that.
    if (algorithm.parts().size() > 1 || algorithm.type() == "group" || algorithm.type() == type()) {
      throw StateError(name + " must be a single algorithm, found '" +
                       std::string(algorithm.type()) + "'");
    }
    add_part(algorithm);
  }
}

void Phases::adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) {
  std::vector<ParameterPtr> all;
  for (const Phase& phase : phases_) {  // a filter that matches nothing is found out now
    for (const ParameterPtr& parameter : phase.algorithm->filter().select(parameters)) {
      if (std::ranges::find(all, parameter) == all.end()) all.push_back(parameter);
    }
  }
  set_parameters(std::move(all));
  offered_ = std::move(parameters);
  module_ = &module;
  enter(0, source);
}

// Later phases have not taken charge of anything yet.
bool Phases::makes_sparse(const ParameterPtr& parameter) const {
  return std::ranges::any_of(phases_, [&](const Phase& phase) {
    return phase.algorithm->filter().matches(*parameter) &&
           phase.algorithm->makes_sparse(parameter);
  });
}

// After a release there is nothing to enter a phase with.
void Phases::require_applied() const {
  if (parameters().empty()) throw StateError("phases must be applied to a model before use");
}

void Phases::enter(size_t phase, MaskSource source) {
  const AtWork at_work(*this);
  if (phase != current_) release_part(algorithm(), source == MaskSource::Loaded);
  current_ = phase;
  algorithm().adopt(*module_, algorithm().filter().select(offered_), source);
}

void Phases::update(Optimizer& optimizer) {
  require_applied();
  if (algorithm().autoupdate) algorithm().update(optimizer);
  count_step();
  if (phases_[current_].until == step()) enter(current_ + 1, MaskSource::Inherited);
}

void Phases::forecast(Forecast& forecast) const {
  std::map<const Parameter*, int64_t> nnz;
  for (const ParameterPtr& parameter : parameters()) {
    nnz[parameter.get()] = parameter->pattern()->nnz();
  }
  for (size_t i = 0; i < phases_.size(); ++i) {
    const int64_t begin = begin_of(i);
    if (begin >= forecast.steps) {
      throw ConfigError(fmt::format("phases: phase {} begins at step {}, the run ends at step {}",
                                    i, begin, forecast.steps));
    }
    const SparsityAlgorithm& algorithm = *phases_[i].algorithm;
    const int64_t end = std::min(phases_[i].until.value_or(forecast.steps), forecast.steps);
    Forecast phase{.steps = end - begin,
                   .source = i == 0 ? MaskSource::Made : MaskSource::Inherited};
    for (const ParameterPtr& parameter : parameters()) {
      if (!algorithm.filter().matches(*parameter)) continue;
      phase.parameters.push_back({.parameter = parameter->name(),
                                  .shape = parameter->shape(),
                                  .algorithm = {},
                                  .chosen_by = {},
                                  .initial_nnz = nnz[parameter.get()],
                                  .final_nnz = nnz[parameter.get()],
                                  .update_steps = {},
                                  .source = parameter.get()});
    }
    for (PlannedParameter& planned : algorithm.plan(std::move(phase))) {
      planned.nnz_before = std::exchange(nnz[planned.source], planned.final_nnz);
      planned.begin = begin;
      for (int64_t& step : planned.update_steps) step += begin;
      for (PlannedCount& change : planned.changes) change.step += begin;
      forecast.parameters.push_back(std::move(planned));
    }
  }
}

StateDict Phases::state_dict() const {
  StateDict state = SparsityAlgorithm::state_dict();
  state.set("phase", static_cast<int64_t>(current_));
  state.merge("running", algorithm().state_dict());
  return state;
}

void Phases::load_state_dict(const StateDict& state) {
  require_applied();
  load_own(state);
  const auto saved = state.get<int64_t>("phase");
  if (saved < 0 || saved >= static_cast<int64_t>(phases_.size())) {
    throw CheckpointError(
        fmt::format("the checkpoint is in phase {} of a plan of {}", saved, phases_.size()));
  }
  const auto phase = static_cast<size_t>(saved);
  if (step() < begin_of(phase) ||
      step() >= phases_[phase].until.value_or(StateDict::kMostCounted)) {
    throw CheckpointError(fmt::format(
        "the checkpoint is in phase {} at step {}, but the plan is in another", phase, step()));
  }
  if (phase != current_) enter(phase, MaskSource::Loaded);
  algorithm().load_state_dict(state.below("running"));
}

}  // namespace lacuna
