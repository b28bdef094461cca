#include "lacuna/sparsity/group.h"

#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

void Group::add(ParameterFilter filter, std::unique_ptr<SparsityAlgorithm> algorithm) {
  if (dynamic_cast<Group*>(algorithm.get()) != nullptr) {
    throw StateError("a group cannot hold a group; merge them with extend()");
  }
  if (!parameters_.empty()) throw StateError("this group has been applied to a model already");
  algorithm->forward_hooks_to(*this);
  filters_.push_back(std::move(filter));
  algorithms_.push_back(std::move(algorithm));
}

void Group::extend(Group&& other) {
  for (size_t i = 0; i < other.algorithms_.size(); ++i) {
    add(std::move(other.filters_[i]), std::move(other.algorithms_[i]));
  }
  other.filters_.clear();
  other.algorithms_.clear();
}

void Group::apply(Module& module) {
  if (!parameters_.empty()) {
    throw StateError("sparsity algorithm 'group' has been applied to a model already");
  }
  if (algorithms_.empty()) throw StateError("this group has no algorithms");
  std::vector<ParameterPtr> left = module.parameters();
  std::vector<std::vector<ParameterPtr>> chosen(algorithms_.size());
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    filters_[i].select(module.parameters());  // refuses a filter that matches nothing at all
    std::vector<ParameterPtr> rest;
    for (const ParameterPtr& parameter : left) {
      (filters_[i].matches(*parameter) ? chosen[i] : rest).push_back(parameter);
    }
    if (chosen[i].empty()) {
      throw ConfigError("entry " + std::to_string(i) + " of the sparsity group (" +
                        std::string(algorithms_[i]->type()) + ", " + filters_[i].description() +
                        "): earlier entries have taken all parameters that it matches");
    }
    left = std::move(rest);
  }
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    parameters_.insert(parameters_.end(), chosen[i].begin(), chosen[i].end());
    algorithms_[i]->expected_batch = expected_batch;
    algorithms_[i]->csr_up_to = csr_up_to;
    algorithms_[i]->adopt(module, std::move(chosen[i]));
  }
}

void Group::before_step(Optimizer& optimizer) {
  for (const auto& algorithm : algorithms_) algorithm->before_step(optimizer);
}

void Group::after_step(Optimizer& optimizer) {
  for (const auto& algorithm : algorithms_) {
    // The group's switch holds for all: an entry updates when both are on.
    const bool entry_autoupdate =
        std::exchange(algorithm->autoupdate, algorithm->autoupdate && autoupdate);
    algorithm->after_step(optimizer);
    algorithm->autoupdate = entry_autoupdate;
  }
  if (autoupdate) count_step();
}

void Group::update(Optimizer& optimizer) {
  count_step();
  for (const auto& algorithm : algorithms_) algorithm->update(optimizer);
}

double Group::target_sparsity(const Parameter& parameter) const {
  for (const auto& algorithm : algorithms_) {
    for (const ParameterPtr& own : algorithm->parameters()) {
      if (own.get() == &parameter) return algorithm->target_sparsity(parameter);
    }
  }
  throw StateError("parameter '" + parameter.name() + "' does not belong to this group");
}

std::vector<MaskUpdate> Group::last_update() const {
  std::vector<MaskUpdate> all;
  for (const auto& algorithm : algorithms_) {
    const std::vector<MaskUpdate> part = algorithm->last_update();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<PlannedParameter> Group::plan(int64_t total_steps) const {
  std::vector<PlannedParameter> all;
  for (const auto& algorithm : algorithms_) {
    const std::vector<PlannedParameter> part = algorithm->plan(total_steps);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void Group::restore_layouts() {
  for (const auto& algorithm : algorithms_) algorithm->restore_layouts();
}

StateDict Group::state_dict() const {
  StateDict state;
  state.set("type", std::string(type()));
  state.set("step", step());
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    state.merge(std::to_string(i), algorithms_[i]->state_dict());
  }
  return state;
}

void Group::load_state_dict(const StateDict& state) {
  require_own(state);
  step_ = state.count("step");
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    algorithms_[i]->load_state_dict(state.below(std::to_string(i)));
  }
}

}  // namespace lacuna
