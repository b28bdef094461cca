// Saving and restoring an optimizer.
#include <set>

#include "lacuna/framework/core/names.h"
#include "lacuna/optimizers/optimizer.h"

namespace lacuna {
namespace {

// The array of that name, or null when it is absent or no array of floats.
const Tensor* find_array(const StateDict& state, const std::string& name) {
  const auto found = state.values().find(name);
  return found == state.values().end() ? nullptr : std::get_if<Tensor>(&found->second);
}

const int64_t* find_count(const StateDict& state, const std::string& name) {
  const auto found = state.values().find(name);
  return found == state.values().end() ? nullptr : std::get_if<int64_t>(&found->second);
}

}  // namespace

StateDict Optimizer::state_dict() const {
  StateDict state;
  state.set("type", std::string(type()));
  state.set("step", steps_);
  const std::vector<StateSlot> slots = state_slots();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = *parameters_[i];
    state.set(parameter.name() + "/step", steps_of_[i]);
    for (const StateSlot& slot : slots) {
      const auto found = parameter.slots().find(slot.name);
      if (found == parameter.slots().end()) continue;
      state.set(parameter.name() + "/" + slot.name, found->second.values.clone());
    }
  }
  return state;
}

// What does not fit between this optimizer and a saved state, one line each.
std::vector<std::string> Optimizer::differences(const StateDict& state) const {
  std::vector<std::string> lines;
  std::set<std::string> expected{"type", "step"};
  const auto check_count = [&](const std::string& name) {
    const int64_t* count = find_count(state, name);
    if (count == nullptr || *count < 0) lines.push_back("'" + name + "' is missing or no count");
    return count == nullptr ? 0 : *count;
  };
  check_count("step");
  for (const ParameterPtr& parameter : parameters_) {
    const std::string prefix = parameter->name() + "/";
    const int64_t steps = check_count(prefix + "step");
    expected.insert(prefix + "step");
    for (const StateSlot& slot : state_slots()) {
      const std::string name = prefix + slot.name;
      expected.insert(name);
      // A parameter that has not been updated yet has no states.
      if (!state.contains(name) && steps == 0) continue;
      const Tensor* saved = find_array(state, name);
      const Shape& shape = slot.requires_dense ? parameter->shape() : parameter->values().shape();
      if (saved == nullptr) {
        lines.push_back("'" + name + "' is missing or no array of floats");
      } else if (saved->shape() != shape) {
        lines.push_back("'" + name + "' has shape " + saved->shape().to_string() + ", expected " +
                        shape.to_string());
      }
    }
  }
  for (const auto& [name, value] : state.values()) {
    if (!expected.contains(name)) lines.push_back("'" + name + "' is unexpected");
  }
  return lines;
}

void Optimizer::load_state_dict(const StateDict& state) {
  const auto& saved_type = state.get<std::string>("type");
  if (saved_type != type()) {
    throw CheckpointError("the saved optimizer is '" + saved_type + "', this one is '" +
                          std::string(type()) + "'");
  }
  const std::vector<std::string> lines = differences(state);
  if (!lines.empty()) {
    throw CheckpointError("the saved optimizer state does not fit: " + join(lines, "; "));
  }
  steps_ = state.get<int64_t>("step");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = *parameters_[i];
    steps_of_[i] = state.get<int64_t>(parameter.name() + "/step");
    for (const StateSlot& slot : state_slots()) {
      const Tensor* saved = find_array(state, parameter.name() + "/" + slot.name);
      if (saved == nullptr) {
        parameter.slots().erase(slot.name);
      } else {
        parameter.slots()[slot.name] = {saved->to(Order::RowMajor).clone(), slot.requires_dense};
      }
    }
  }
}

}  // namespace lacuna
