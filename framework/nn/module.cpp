#include "lacuna/framework/nn/module.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <set>
#include <variant>

#include "lacuna/framework/autograd/layer_span.hpp"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/other_model_error.hpp"
#include "lacuna/framework/nn/path_clash.hpp"
#include "lacuna/framework/nn/sharded_batch.h"
#include "lacuna/framework/param/saved_parameter.hpp"

namespace lacuna {

namespace {

// A parameter without a name of its own has its module's.
std::string join_path(const std::string& scope, const std::string& name) {
  if (name.empty()) return scope;
  return scope.empty() ? name : scope + "." + name;
}

[[noreturn]] void fail_memory(const Module& layer, std::span<const Variable> inputs,
                              const std::bad_alloc& error) {
  std::string given;
  for (const Variable& x : inputs) given += (given.empty() ? "" : ", ") + x.shape().to_string();
  throw MemoryError(fmt::format("layer '{}' ({}) with {}: {}", layer.path(), layer.type(), given,
                                describe(error)));
}

}  // namespace

Variable Module::operator()(std::span<const Variable> inputs) try {
  const LayerSpan span(path_);
  forward_pre_hooks_.call(*this);
  std::vector<Variable> given(inputs.begin(), inputs.end());
  for (Variable& x : given) {
    for (const Transform& transform : input_transforms_) x = transform(x);
  }
  Variable y = forward_all(given);
  for (const Transform& transform : output_transforms_) y = transform(y);
  return y;
} catch (const std::bad_alloc& error) {
  fail_memory(*this, inputs, error);
}

std::vector<Variable> Module::forward_shards(std::span<const Variable> inputs) try {
  const LayerSpan span(path_);
  const ShardedBatch* batch = sharded_batch();
  if (batch == nullptr || batch->shards().size() != inputs.size()) {
    throw StateError(fmt::format(
        "layer '{}' ({}) was given {} shards of a batch which has {}", path_, type(), inputs.size(),
        batch == nullptr ? "none" : std::to_string(batch->shards().size())));
  }
  forward_pre_hooks_.call(*this);
  std::vector<Variable> given(inputs.begin(), inputs.end());
  for (const Transform& transform : input_transforms_) {
    for_each_shard([&](size_t i) { given[i] = transform(given[i]); });
  }
  std::vector<Variable> outputs = forward_in_shards(given);
  for (const Transform& transform : output_transforms_) {
    for_each_shard([&](size_t i) { outputs[i] = transform(outputs[i]); });
  }
  return outputs;
} catch (const std::bad_alloc& error) {
  fail_memory(*this, inputs, error);
}

std::vector<Variable> Module::forward_in_shards(std::span<const Variable> inputs) {
  std::vector<Variable> outputs(inputs.size());
  for_each_shard([&](size_t i) { outputs[i] = forward_all(inputs.subspan(i, 1)); });
  return outputs;
}

Variable Module::forward_all(std::span<const Variable> inputs) {
  if (inputs.size() != 1) {
    throw ShapeError(
        fmt::format("layer '{}' ({}) takes one input, found {}", path_, type(), inputs.size()));
  }
  return forward(inputs.front());
}

std::optional<std::vector<Shape>> Module::child_inputs(const Shape&) const {
  if (children_.empty()) return std::vector<Shape>();
  return std::nullopt;
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
  const std::string advice = suggest_name(name, names);
  throw StateError("the model has no parameter '" + std::string(name) + "'" +
                   (advice.empty() ? "" : "; " + advice));
}

std::vector<std::pair<std::string, Tensor*>> Module::buffers() {
  std::vector<std::pair<std::string, Tensor*>> all;
  for (Module* module : modules()) {
    for (const auto& buffer : module->buffers_) {
      all.emplace_back(module->path_.empty() ? buffer->name : module->path_ + "." + buffer->name,
                       &buffer->values);
    }
  }
  return all;
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
  for (Module* module : modules()) {
    for (const auto& buffer : module->buffers_) buffer->values = buffer->initial.clone();
    module->reset_random(seed);
  }
}

void Module::set_requires_dense(bool dense) {
  for (const ParameterPtr& parameter : parameters()) parameter->requires_dense = dense;
}

void Module::set_trainable(bool trainable) {
  for (Module* module : modules()) module->trainable_ = trainable;
  for (const ParameterPtr& parameter : parameters()) parameter->trainable = trainable;
}

void Module::freeze(const std::vector<std::string>& globs) {
  const std::vector<ParameterPtr> all = parameters();
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : all) names.push_back(parameter->name());
  for (const std::string& glob : globs) {
    bool matches = false;
    for (const ParameterPtr& parameter : all) {
      if (!glob_match(glob, parameter->name())) continue;
      parameter->trainable = false;
      matches = true;
    }
    if (matches) continue;
    const std::string advice = suggest_name(glob, names);
    throw ConfigError("'" + glob + "' matches no parameter" +
                      (advice.empty() ? "" : "; " + advice));
  }
}

bool Module::trainable() const {
  const auto is_trained = [](const auto& entry) { return entry.second->trainable; };
  return trainable_ && (parameters_.empty() || std::ranges::any_of(parameters_, is_trained));
}

void Module::set_training(bool training) {
  for (Module* module : modules()) module->training_ = training;
}

ParameterPtr Module::register_parameter(std::string name, ParameterPtr parameter) {
  if (parameter == nullptr) {
    throw StateError("module '" + path_ + "' was given no parameter for '" + name +
                     "': the pointer is null");
  }
  parameter->set_name(join_path(path_, name));
  parameters_.emplace_back(std::move(name), parameter);
  return parameter;
}

void Module::require_no_member(const std::string& name) const {
  const auto is_named = [&](const auto& entry) { return entry.first == name; };
  if (std::ranges::any_of(children_, is_named) || std::ranges::any_of(parameters_, is_named) ||
      std::ranges::any_of(buffers_, [&](const auto& buffer) { return buffer->name == name; })) {
    throw StateError("module '" + path_ + "' already has a child, parameter or buffer named '" +
                     name + "'");
  }
}

Tensor& Module::register_buffer(std::string name, const Tensor& initial) {
  if (name.empty() || name.find_first_of("./") != std::string::npos) {
    throw StateError("a buffer needs a name without '.' and '/', found '" + name + "'");
  }
  require_no_member(name);
  buffers_.push_back(
      std::make_unique<Buffer>(Buffer{std::move(name), initial.clone(), initial.clone()}));
  return buffers_.back()->values;
}

Module& Module::register_module(std::string name, std::unique_ptr<Module> child) {
  require_module_name(name);
  require_no_member(name);
  if (child == nullptr) {
    throw StateError("module '" + path_ + "' was given no child for '" + name +
                     "': the pointer is null");
  }
  child->set_path(join_path(scope_, name), scope_);
  Module* root = this;
  while (root->parent_ != nullptr) root = root->parent_;
  require_no_clash(*root, *child);
  child->parent_ = this;
  children_.emplace_back(std::move(name), std::move(child));
  return *children_.back().second;
}

void Module::set_path(const std::string& path, const std::string& scope) {
  path_ = path;
  scope_ = joins_branches() ? scope : path;
  for (const auto& [name, parameter] : parameters_) parameter->set_name(join_path(path_, name));
  for (const auto& [name, child] : children_) child->set_path(join_path(scope_, name), scope_);
}

StateDict Module::state_dict() const {
  StateDict state;
  for (const ParameterPtr& parameter : parameters()) save_parameter(*parameter, state);
  for (Module* module : const_cast<Module*>(this)->modules()) {
    for (const auto& buffer : module->buffers_) {
      state.set(module->path_ + "/" + buffer->name, buffer->values.clone());
    }
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
      lines.push_back(state.contains(name)
                          ? "'" + name + "' is not a floating-point array in the checkpoint"
                          : "'" + name + "' " + parameter->shape().to_string() +
                                " is in the model only");
      continue;
    }
    const SavedParameter found(state, name);
    if (found.shape() != parameter->shape()) {
      lines.push_back("'" + name + "' is " + parameter->shape().to_string() + " in the model, " +
                      found.shape().to_string() + " in the checkpoint");
    } else if (parameter->use == WeightUse::Convolution &&
               found.layout().pattern_shape().is_structured()) {
      lines.push_back("'" + name + "', a convolution's weight, is in layout '" +
                      std::string(found.layout().name()) +
                      "' in the checkpoint; that layout is only for weights of linear layers");
    }
  }
  for (const std::string& name : saved) {
    if (std::ranges::find(names, name) != names.end()) continue;
    lines.push_back("'" + name + "' " + SavedParameter(state, name).shape().to_string() +
                    " is in the checkpoint only");
  }
  return lines;
}

// Nothing saves such values, and nothing that is computed with them means anything.
void require_finite(const StateDict& state) {
  for (const auto& [name, value] : state.values()) {
    const auto* values = std::get_if<Tensor>(&value);
    if (values == nullptr) continue;
    if (std::ranges::all_of(values->storage(), [](float v) { return std::isfinite(v); })) continue;
    throw CheckpointError("'" + name + "' has values that are NaN or infinite");
  }
}

// "bn1.running_mean" for "bn1/running_mean".
std::string dotted(std::string name) {
  const size_t slash = name.rfind('/');
  return name.replace(slash, 1, slash == 0 ? "" : ".");
}

}  // namespace

// As `differences`, of buffers: arrays below a module's path that are no part of a compressed
// parameter and that no module keeps as something of its own.
std::vector<std::string> Module::buffer_differences(const StateDict& state) {
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (Module* module : modules()) {
    for (const auto& buffer : module->buffers_) {
      const std::string key = module->path_ + "/" + buffer->name;
      const Shape& shape = buffer->values.shape();
      known.insert(key);
      const auto found = state.values().find(key);
      const Tensor* saved =
          found == state.values().end() ? nullptr : std::get_if<Tensor>(&found->second);
      if (saved == nullptr) {
        lines.push_back("'" + dotted(key) + "' " + shape.to_string() + " is in the model only");
      } else if (saved->shape() != shape) {
        lines.push_back("'" + dotted(key) + "' is " + shape.to_string() + " in the model, " +
                        saved->shape().to_string() + " in the checkpoint");
      }
    }
    const StateDict extra = module->extra_state();
    for (const auto& [key, value] : extra.values()) {
      known.insert(module->path_ + "/" + key);
      if (state.contains(module->path_ + "/" + key)) continue;
      lines.push_back("'" + dotted(module->path_ + "/" + key) + "' is in the model only");
    }
  }
  for (const auto& [key, value] : state.values()) {
    const Tensor* saved = std::get_if<Tensor>(&value);
    const size_t slash = key.rfind('/');
    if (saved == nullptr || slash == std::string::npos || known.contains(key)) continue;
    if (state.contains(key.substr(0, slash) + "/indptr")) continue;
    lines.push_back("'" + dotted(key) + "' " + saved->shape().to_string() +
                    " is in the checkpoint only");
  }
  return lines;
}

void Module::load_state_dict(const StateDict& state) {
  require_finite(state);
  const std::vector<ParameterPtr> all = parameters();
  std::vector<std::string> lines = differences(all, state);
  std::ranges::move(buffer_differences(state), std::back_inserter(lines));
  if (!lines.empty()) {
    throw OtherModelError("the checkpoint belongs to a different model: " +
                          join_foreign(lines, "; "));
  }
  for (const ParameterPtr& parameter : all) {
    const SavedParameter saved(state, parameter->name());
    saved.restore(*parameter, saved.pattern());
  }
  for (Module* module : modules()) {
    for (const auto& buffer : module->buffers_) {
      buffer->values = state.get<Tensor>(module->path_ + "/" + buffer->name).clone();
    }
    if (!module->extra_state().empty()) module->load_extra_state(state.below(module->path()));
  }
}

}  // namespace lacuna
