#include "lacuna/sparsity/phases.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/dense.h"
#include "lacuna/sparsity/group.h"

namespace lacuna {

Phases::Phases(std::vector<Phase> phases) : SparsityAlgorithm({}), phases_(std::move(phases)) {
  if (phases_.empty()) throw ConfigError("phases: expected at least one");
  int64_t before = 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const auto& until = phases_[i].until;
    const bool last = i + 1 == phases_.size();
    const std::string name = "phase " + std::to_string(i);
    if (!last && !until) throw ConfigError(name + " needs `until`: only the last has no end");
    if (last && until)
      throw ConfigError(name +
                        ", the last one, lasts to the end of the run; "
                        "leave its `until` out");
    if (until && *until <= before) {
      throw ConfigError(name + ": until must be a step after " + std::to_string(before) +
                        ", found " + std::to_string(*until));
    }
    before = until.value_or(0);
    phases_[i].algorithm->forward_hooks_to(*this);
    SparsityAlgorithm* algorithm = phases_[i].algorithm.get();
    if (dynamic_cast<Phases*>(algorithm) != nullptr || dynamic_cast<Group*>(algorithm) != nullptr) {
      throw StateError(name + " must be a single algorithm, not a " +
                       std::string(algorithm->type()));
    }
  }
}

void Phases::apply(Module& module) {
  if (module_ != nullptr) {
    throw StateError("sparsity algorithm 'phases' has been applied to a model already");
  }
  for (const Phase& phase : phases_) {  // a filter that matches nothing is found out now
    for (const ParameterPtr& parameter :
         phase.algorithm->options().param_filter.select(module.parameters())) {
      if (std::ranges::find(parameters_, parameter) == parameters_.end()) {
        parameters_.push_back(parameter);
      }
    }
  }
  module_ = &module;
  for (const Phase& phase : phases_) phase.algorithm->csr_up_to = csr_up_to;
  enter(0, FirstMasks::Make);
}

void Phases::enter(size_t phase, FirstMasks first) {
  if (phase != current_) {
    first == FirstMasks::Keep ? algorithm().release_loaded() : algorithm().release();
  }
  current_ = phase;
  algorithm().expected_batch = expected_batch;
  algorithm().adopt(*module_, algorithm().options().param_filter.select(module_->parameters()),
                    first);
}

void Phases::before_step(Optimizer& optimizer) { algorithm().before_step(optimizer); }

void Phases::after_step(Optimizer& optimizer) {
  for (const ParameterPtr& parameter : parameters_) parameter->prune();
  SparsityAlgorithm& running = algorithm();
  const bool own = std::exchange(running.autoupdate, running.autoupdate && autoupdate);
  running.after_step(optimizer);
  running.autoupdate = own;
  transition_.clear();
  if (!autoupdate) return;
  count_step();
  if (phases_[current_].until == step()) {
    transition_ = running.last_update();
    enter(current_ + 1, FirstMasks::Inherit);
  }
}

void Phases::update(Optimizer& optimizer) {
  algorithm().update(optimizer);
  count_step();
  transition_.clear();
  if (phases_[current_].until == step()) {
    transition_ = algorithm().last_update();
    enter(current_ + 1, FirstMasks::Inherit);
  }
}

double Phases::target_sparsity(const Parameter& parameter) const {
  const auto& chosen = algorithm().parameters();
  const auto is_it = [&](const ParameterPtr& p) { return p.get() == &parameter; };
  if (std::ranges::any_of(chosen, is_it)) return algorithm().target_sparsity(parameter);
  return 1.0 - parameter.pattern()->density();  // it keeps what it has
}

std::vector<MaskUpdate> Phases::last_update() const {
  std::vector<MaskUpdate> all = transition_;
  const std::vector<MaskUpdate> running = algorithm().last_update();
  all.insert(all.end(), running.begin(), running.end());
  return all;
}

std::vector<PlannedParameter> Phases::plan(int64_t total_steps) const {
  std::vector<PlannedParameter> all;
  std::map<std::string, int64_t> nnz;
  for (const ParameterPtr& parameter : parameters_) {
    nnz[parameter->name()] = parameter->pattern()->nnz();
  }
  int64_t begin = 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const SparsityAlgorithm& algorithm = *phases_[i].algorithm;
    const int64_t end = phases_[i].until.value_or(total_steps);
    if (begin >= total_steps) {
      throw ConfigError("phases: phase " + std::to_string(i) + " begins at step " +
                        std::to_string(begin) + ", the run ends at step " +
                        std::to_string(total_steps));
    }
    std::vector<PlannedParameter> planned;
    std::vector<Shape> shapes;
    std::vector<const Parameter*> chosen;
    for (const ParameterPtr& parameter : parameters_) {
      if (!algorithm.options().param_filter.matches(*parameter)) continue;
      planned.push_back({.parameter = parameter->name(),
                         .shape = parameter->shape(),
                         .algorithm = std::string(algorithm.type()),
                         .chosen_by = algorithm.options().param_filter.description(),
                         .initial_nnz = nnz[parameter->name()],
                         .final_nnz = 0,
                         .update_steps = {},
                         .layout = {},
                         .final_layout = {},
                         .compressed = std::string(algorithm.compressed_layout().name())});
      shapes.push_back(parameter->shape());
      chosen.push_back(parameter.get());
    }
    const std::vector<int64_t> targets = algorithm.targets_at(0, 0, shapes);
    const bool fills = dynamic_cast<const Dense*>(&algorithm) != nullptr;
    for (size_t j = 0; j < planned.size(); ++j) {
      PlannedParameter& p = planned[j];
      if (i > 0) p.initial_nnz = fills ? p.shape.numel() : std::min(p.initial_nnz, targets[j]);
      p.final_nnz = p.initial_nnz;
    }
    algorithm.foresee(planned, std::min(end, total_steps) - begin);
    algorithm.require_nonzeros(planned);
    for (size_t j = 0; j < planned.size(); ++j) {
      PlannedParameter& p = planned[j];
      p.layout = algorithm.foreseen_layout(*chosen[j], p.initial_nnz).name();
      p.final_layout = algorithm.foreseen_layout(*chosen[j], p.final_nnz).name();
      nnz[p.parameter] = p.final_nnz;
      for (int64_t& step : p.update_steps) step += begin;
      all.push_back(std::move(p));
    }
    begin = end;
  }
  return all;
}

void Phases::restore_layouts() { algorithm().restore_layouts(); }

StateDict Phases::state_dict() const {
  StateDict state;
  state.set("type", std::string(type()));
  state.set("step", step());
  state.set("phase", static_cast<int64_t>(current_));
  state.merge("running", algorithm().state_dict());
  return state;
}

void Phases::load_state_dict(const StateDict& state) {
  require_own(state);
  const auto saved = state.get<int64_t>("phase");
  if (saved < 0 || saved >= static_cast<int64_t>(phases_.size())) {
    throw CheckpointError("the checkpoint is in phase " + std::to_string(saved) + " of a plan of " +
                          std::to_string(phases_.size()));
  }
  const auto phase = static_cast<size_t>(saved);
  step_ = state.count("step");
  const int64_t begin = phase == 0 ? 0 : *phases_[phase - 1].until;
  if (step_ < begin || step_ >= phases_[phase].until.value_or(StateDict::kMostCounted)) {
    throw CheckpointError("the checkpoint is in phase " + std::to_string(phase) + " at step " +
                          std::to_string(step_) + ", when the plan is in another");
  }
  if (phase != current_) enter(phase, FirstMasks::Keep);
  algorithm().load_state_dict(state.below("running"));
}

}  // namespace lacuna
