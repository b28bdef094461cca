#include "lacuna/sparsity/group.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

namespace {

void require_unapplied(const Group& group) {
  if (group.parameters().empty()) return;
  throw StateError("this group has been applied to a model already");
}

}  // namespace

void Group::add(ParameterFilter filter, std::unique_ptr<SparsityAlgorithm> algorithm) {
  if (algorithm == nullptr) {
    throw StateError("the group was given no algorithm: the pointer is null");
  }
  if (algorithm->type() == type()) {
    throw StateError("a group cannot hold a group; merge them with extend()");
  }
  require_unapplied(*this);
  add_part(*algorithm);
  filters_.push_back(std::move(filter));
  algorithms_.push_back(std::move(algorithm));
}

void Group::extend(Group&& other) {
  require_unapplied(*this);  // before anything is moved
  for (size_t i = 0; i < other.algorithms_.size(); ++i) {
    add(std::move(other.filters_[i]), std::move(other.algorithms_[i]));
  }
  other.filters_.clear();
  other.algorithms_.clear();
}

void Group::adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) {
  if (algorithms_.empty()) throw StateError("this group has no algorithms");
  std::vector<ParameterPtr> left = parameters, all;
  std::vector<std::vector<ParameterPtr>> chosen(algorithms_.size());
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    filters_[i].select(parameters);  // refuses a filter that matches nothing at all
    std::vector<ParameterPtr> rest;
    for (const ParameterPtr& parameter : left) {
      (filters_[i].matches(*parameter) ? chosen[i] : rest).push_back(parameter);
    }
    if (chosen[i].empty()) {
      throw ConfigError(
          fmt::format("entry {} of the sparsity group ({}, {}): earlier entries have taken all "
                      "parameters that it matches",
                      i, algorithms_[i]->type(), filters_[i].description()));
    }
    left = std::move(rest);
    all.insert(all.end(), chosen[i].begin(), chosen[i].end());
  }
  set_parameters(std::move(all));
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    algorithms_[i]->adopt(module, std::move(chosen[i]), source);
  }
}

void Group::update(Optimizer& optimizer) {
  for (const auto& algorithm : algorithms_) {
    if (algorithm->autoupdate) algorithm->update(optimizer);
  }
  count_step();
}

void Group::forecast(Forecast& forecast) const {
  for (const auto& algorithm : algorithms_) {
    for (PlannedParameter& planned : algorithm->plan(forecast.steps)) {
      forecast.parameters.push_back(std::move(planned));
    }
  }
}

StateDict Group::state_dict() const {
  StateDict state = SparsityAlgorithm::state_dict();
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    state.merge(std::to_string(i), algorithms_[i]->state_dict());
  }
  return state;
}

void Group::load_state_dict(const StateDict& state) {
  SparsityAlgorithm::load_state_dict(state);
  for (size_t i = 0; i < algorithms_.size(); ++i) {
    algorithms_[i]->load_state_dict(state.below(std::to_string(i)));
  }
}

}  // namespace lacuna
