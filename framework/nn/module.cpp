#include "lacuna/framework/nn/module.h"

#include <algorithm>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/param/saved_parameter.h"

namespace lacuna {

Variable Module::operator()(const Variable& input) {
  forward_pre_hooks_.call(*this);
  Variable x = input;
  for (const Transform& transform : input_transforms_) x = transform(x);
  x = forward(x);
  for (const Transform& transform : output_transforms_) x = transform(x);
  return x;
}

std::vector<ParameterPtr> Module::parameters() const {
  std::vector<ParameterPtr> all;
  for (const auto& [name, parameter] : parameters_) all.push_back(parameter);
  for (const auto& [name, child] : children_)
    std::ranges::copy(child->parameters(), std::back_inserter(all));
  return all;
}

ParameterPtr Module::parameter(std::string_view name) const {
  std::vector<std::string> names;
  for (const ParameterPtr& candidate : parameters()) {
    if (candidate->name() == name) return candidate;
    names.push_back(candidate->name());
  }
  throw StateError("the model has no parameter '" + std::string(name) + "'; " +
                   suggest_name(name, names));
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> all{this};
  for (const auto& [name, child] : children_)
    std::ranges::copy(child->modules(), std::back_inserter(all));
  return all;
}

std::vector<std::pair<std::string, Module*>> Module::children() const {
  std::vector<std::pair<std::string, Module*>> list;
  for (const auto& [name, child] : children_) list.emplace_back(name, child.get());
  return list;
}

void Module::initialize(uint64_t seed) {
  for (const ParameterPtr& parameter : parameters()) parameter->initialize(seed);
  for (Module* module : modules()) module->reset_random(seed);
}

void Module::set_requires_dense(bool dense) {
  for (const ParameterPtr& parameter : parameters()) parameter->requires_dense = dense;
}

void Module::set_training(bool training) {
  for (Module* module : modules()) module->training_ = training;
}

ParameterPtr Module::register_parameter(std::string name, ParameterPtr parameter) {
  parameter->set_name(path_.empty() ? name : path_ + "." + name);
  parameters_.emplace_back(std::move(name), parameter);
  return parameter;
}

Module& Module::register_module(std::string name, std::unique_ptr<Module> child) {
  const auto taken = [&](const auto& entry) { return entry.first == name; };
  if (name.empty() || name.find_first_of("./") != std::string::npos) {
    throw StateError("a module's name must not be empty nor contain '.' or '/', found '" + name +
                     "'");
  }
  if (std::ranges::any_of(children_, taken) || std::ranges::any_of(parameters_, taken)) {
    throw StateError("module '" + path_ + "' has two children named '" + name + "'");
  }
  child->set_path(path_.empty() ? name : path_ + "." + name);
  children_.emplace_back(std::move(name), std::move(child));
  return *children_.back().second;
}

void Module::set_path(const std::string& path) {
  path_ = path;
  for (const auto& [name, parameter] : parameters_) parameter->set_name(path + "." + name);
  for (const auto& [name, child] : children_) child->set_path(path + "." + name);
}

StateDict Module::state_dict() const {
  StateDict state;
  for (const ParameterPtr& parameter : parameters()) save_parameter(*parameter, state);
  for (Module* module : const_cast<Module*>(this)->modules()) {
    const StateDict extra = module->extra_state();
    if (!extra.empty()) state.merge(module->path(), extra);
  }
  return state;
}

namespace {

// What does not fit between a model and a saved state, one line each.
std::vector<std::string> differences(const std::vector<ParameterPtr>& parameters,
                                     const StateDict& state) {
  const std::vector<std::string> saved = saved_parameter_names(state);
  std::vector<std::string> lines, names;
  for (const ParameterPtr& parameter : parameters) {
    const std::string& name = parameter->name();
    names.push_back(name);
    if (std::ranges::find(saved, name) == saved.end()) {
      lines.push_back("'" + name + "' " + parameter->shape().to_string() + " is in the model only");
      continue;
    }
    const Shape shape = SavedParameter(state, name).shape();
    if (shape != parameter->shape()) {
      lines.push_back("'" + name + "' is " + parameter->shape().to_string() + " in the model, " +
                      shape.to_string() + " in the checkpoint");
    }
  }
  for (const std::string& name : saved) {
    if (std::ranges::find(names, name) != names.end()) continue;
    lines.push_back("'" + name + "' " + SavedParameter(state, name).shape().to_string() +
                    " is in the checkpoint only");
  }
  return lines;
}

}  // namespace

void Module::load_state_dict(const StateDict& state) {
  const std::vector<ParameterPtr> all = parameters();
  const std::vector<std::string> lines = differences(all, state);
  if (!lines.empty()) {
    throw CheckpointError("the checkpoint is of another model: " + join(lines, "; "));
  }
  for (const ParameterPtr& parameter : all) {
    const SavedParameter saved(state, parameter->name());
    saved.restore(*parameter, saved.pattern());
  }
  for (Module* module : modules()) {
    if (!module->extra_state().empty()) module->load_extra_state(state.below(module->path()));
  }
}

}  // namespace lacuna
