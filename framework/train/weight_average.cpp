#include "lacuna/framework/train/weight_average.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/elementwise.hpp"
#include "lacuna/framework/param/saved_slot.hpp"
#include "lacuna/sparsity/weights/master_weight.h"

namespace lacuna {
namespace {

constexpr const char* kSlot = "ema";

// The average of a parameter that has a master from now on: outside of the pattern the master's
// own, which nothing has been averaged of.
Tensor widened(const Parameter& parameter, const Slot& slot, const Tensor& master) {
  Tensor wide = master.clone();
  const Tensor inside =
      parameter.pattern()->layout().to_dense(*parameter.pattern(), slot.values.storage());
  const ByteArray mask = parameter.mask();
  for (size_t i = 0; i < mask.values.size(); ++i) {
    if (mask.values[i] != 0) wide.mutable_data()[i] = inside.data()[i];
  }
  return wide;
}

void update_average(Parameter& parameter, float share) {
  const Tensor* master = master_of(parameter);
  const Tensor& weights = master == nullptr ? parameter.values() : *master;
  const bool was_pruned = parameter.is_pruned();
  auto& slots = parameter.slots();
  const auto found = slots.find(kSlot);
  if (found == slots.end()) {
    slots[kSlot] = {weights.clone(), master != nullptr};
  } else {
    Slot& slot = found->second;
    if (master != nullptr && !slot.requires_dense) {
      slot = {widened(parameter, slot, *master), true};
    }
    move_towards(share, weights.storage(), slot.values.mutable_storage());
  }
  if (was_pruned) parameter.mark_pruned();  // zeros have stayed zeros
}

const Slot* find_average(const Parameter& parameter) {
  const auto found = parameter.slots().find(kSlot);
  return found == parameter.slots().end() ? nullptr : &found->second;
}

[[noreturn]] void refuse(const std::vector<std::string>& lines) {
  throw CheckpointError("the saved average of the weights does not fit: " +
                        join_foreign(lines, "; "));
}

}  // namespace

WeightAverage::WeightAverage(const Module& model, const WeightAverageOptions& options,
                             const NamedBuffers& buffers)
    : parameters_(model.parameters()), options_(options) {
  for (const auto& [name, values] : buffers) buffers_.push_back({name, values, Tensor()});
  if (!(options.decay >= 0.0 && options.decay < 1.0)) {
    throw ConfigError("the decay of an average of weights must be in [0, 1), found " +
                      Config(options.decay).text());
  }
}

std::vector<ParameterPtr> WeightAverage::averaged() const {
  std::vector<ParameterPtr> trained;
  for (const ParameterPtr& parameter : parameters_) {
    if (parameter->trainable) trained.push_back(parameter);
  }
  return trained;
}

void WeightAverage::update(int64_t steps) {
  if (!has_begun(steps)) return;
  const auto share = static_cast<float>(1.0 - options_.decay);
  for (const ParameterPtr& parameter : averaged()) update_average(*parameter, share);
  for (AveragedBuffer& buffer : buffers_) {
    if (buffer.average.defined()) {
      move_towards(share, buffer.values->storage(), buffer.average.mutable_storage());
    } else {
      buffer.average = buffer.values->clone();
    }
  }
}

std::unique_ptr<ShownAverage> WeightAverage::show() {
  std::vector<std::pair<Tensor*, Tensor*>> buffers;
  for (AveragedBuffer& buffer : buffers_) {
    if (buffer.average.defined()) buffers.emplace_back(buffer.values, &buffer.average);
  }
  return std::make_unique<ShownAverage>(averaged(), std::move(buffers));
}

StateDict WeightAverage::state_dict() const {
  StateDict state;
  for (const ParameterPtr& parameter : averaged()) {
    if (const Slot* slot = find_average(*parameter)) {
      state.set(parameter->name(), slot_to_saved(*parameter, *slot));
    }
  }
  for (const AveragedBuffer& buffer : buffers_) {
    if (buffer.average.defined()) state.set(buffer.name, buffer.average.clone());
  }
  return state;
}

void WeightAverage::load_state_dict(const StateDict& state, int64_t steps) {
  std::vector<std::string> lines;
  std::set<std::string> known;
  // The shape that it should have in the model comes first.
  const auto check = [&](const std::string& name, const std::vector<Shape>& shapes) {
    const bool is_saved = state.contains(name);
    known.insert(name);
    if (is_saved != has_begun(steps)) {
      lines.push_back("'" + name + "' is " + (is_saved ? "unexpected" : "missing"));
    }
    if (!is_saved) return;
    const Shape shape = state.get<Tensor>(name).shape();
    if (std::ranges::find(shapes, shape) != shapes.end()) return;
    lines.push_back("'" + name + "' has shape " + shape.to_string() + ", in the model " +
                    shapes.front().to_string());
  };
  for (const ParameterPtr& parameter : averaged()) {
    const bool is_dense = master_of(*parameter) != nullptr;
    check(parameter->name(), shapes_of_saved_slot(*parameter, is_dense));
  }
  for (const AveragedBuffer& buffer : buffers_) check(buffer.name, {buffer.values->shape()});
  for (const auto& [name, value] : state.values()) {
    if (!known.contains(name))
      lines.push_back("'" + name + "' is not a trained parameter or buffer");
  }
  if (!lines.empty()) refuse(lines);
  for (const ParameterPtr& parameter : averaged()) {
    const bool is_dense = master_of(*parameter) != nullptr;
    const bool was_pruned = parameter->is_pruned();
    if (has_begun(steps)) {
      const auto& saved = state.get<Tensor>(parameter->name());
      parameter->slots()[kSlot] = {slot_from_saved(*parameter, saved, is_dense), is_dense};
    } else {
      parameter->slots().erase(kSlot);
    }
    if (was_pruned) parameter->mark_pruned();
  }
  for (AveragedBuffer& buffer : buffers_) {
    buffer.average = has_begun(steps) ? state.get<Tensor>(buffer.name).clone() : Tensor();
  }
}

ShownAverage::ShownAverage(const std::vector<ParameterPtr>& parameters,
                           std::vector<std::pair<Tensor*, Tensor*>> buffers)
    : buffers_(std::move(buffers)) {
  for (const auto& [values, average] : buffers_) std::swap(*values, *average);
  shown_.reserve(parameters.size());
  for (const ParameterPtr& parameter : parameters) {
    if (find_average(*parameter) == nullptr) continue;
    const bool was_pruned = parameter->is_pruned();
    Slot& slot = parameter->slots().at(kSlot);
    Tensor part;
    if (slot.requires_dense) {
      const Pattern& pattern = *parameter->pattern();
      part = Tensor::empty(pattern.stored_shape());
      pattern.layout().from_dense(pattern, slot.values.storage(), part.mutable_storage());
    }
    std::swap(parameter->mutable_values(), slot.requires_dense ? part : slot.values);
    if (was_pruned) parameter->mark_pruned();
    shown_.push_back({parameter, std::move(part)});
  }
}

ShownAverage::~ShownAverage() {
  for (const auto& [values, average] : buffers_) std::swap(*values, *average);
  for (Shown& shown : shown_) {
    Parameter& parameter = *shown.parameter;
    const bool was_pruned = parameter.is_pruned();
    Slot& slot = parameter.slots().at(kSlot);
    std::swap(parameter.mutable_values(), shown.own.defined() ? shown.own : slot.values);
    if (was_pruned) parameter.mark_pruned();
  }
}

void load_average(const StateDict& state, Module& model, const NamedBuffers& buffers) {
  std::set<std::string> known;
  for (const auto& [name, value] : state.values()) {
    const auto* values = std::get_if<Tensor>(&value);
    if (values == nullptr) continue;
    if (std::ranges::all_of(values->storage(), [](float v) { return std::isfinite(v); })) continue;
    refuse({"'" + name + "' has values that are NaN or infinite"});
  }
  const auto refuse_shape = [](const std::string& name, const Shape& saved, const Shape& shape) {
    refuse(
        {"'" + name + "' has shape " + saved.to_string() + ", in the model " + shape.to_string()});
  };
  for (const ParameterPtr& parameter : model.parameters()) {
    if (!state.contains(parameter->name())) continue;
    known.insert(parameter->name());
    const auto& saved = state.get<Tensor>(parameter->name());
    if (saved.shape() == parameter->shape()) {
      parameter->assign(saved);
    } else if (saved.shape() == Shape{parameter->pattern()->nnz()}) {
      parameter->assign_elements(saved);
    } else {
      refuse_shape(parameter->name(), saved.shape(), parameter->shape());
    }
  }
  for (const auto& [name, values] : buffers) {
    if (!state.contains(name)) continue;
    known.insert(name);
    const auto& saved = state.get<Tensor>(name);
    if (saved.shape() != values->shape()) refuse_shape(name, saved.shape(), values->shape());
    *values = saved.clone();
  }
  for (const auto& [name, value] : state.values()) {
    if (!known.contains(name)) refuse({"'" + name + "' is not a parameter or buffer of the model"});
  }
}

}  // namespace lacuna
