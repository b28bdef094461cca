// Saving and restoring an optimizer.
#include <fmt/core.h>
#include <algorithm>
#include <set>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/param/saved_slot.hpp"
#include "lacuna/optimizers/optimizer.h"

namespace lacuna {
namespace {

// The array of that name, or null if it is missing or not an array of floats.
const Tensor* find_array(const StateDict& state, const std::string& name) {
  const auto found = state.values().find(name);
  return found == state.values().end() ? nullptr : std::get_if<Tensor>(&found->second);
}

const int64_t* find_count(const StateDict& state, const std::string& name) {
  const auto found = state.values().find(name);
  return found == state.values().end() ? nullptr : std::get_if<int64_t>(&found->second);
}

// Marks a state that is kept for every position because a sparsity algorithm requires it.
constexpr const char* kDenseMark = "_is_dense";

constexpr const char* kAge = "age";
constexpr const char* kEarlierSteps = "earlier_steps";

}  // namespace

int64_t Optimizer::state_bytes(const Parameter& parameter) const {
  int64_t elements = 0;
  for (const StateSlot& slot : state_slots()) {
    elements += slot.requires_dense ? parameter.numel() : parameter.pattern()->stored_size();
  }
  const bool has_ages = most_age() > 0 && !parameter.pattern()->is_dense();
  const int64_t ages = has_ages ? parameter.pattern()->stored_size() : 0;
  return elements * static_cast<int64_t>(sizeof(float)) +
         ages * static_cast<int64_t>(sizeof(uint16_t));
}

// Whether ages are kept for every position of a parameter, as its states are.
bool Optimizer::keeps_whole_ages(const Parameter& parameter) const {
  return std::ranges::any_of(state_slots(), [&](const StateSlot& slot) {
    const auto found = parameter.slots().find(slot.name);
    return found != parameter.slots().end() && found->second.requires_dense;
  });
}

StateDict Optimizer::state_dict() const {
  StateDict state;
  state.set("type", std::string(type()));
  state.set("step", steps_);
  if (earlier_steps_ > 0) state.set(kEarlierSteps, earlier_steps_);
  const std::vector<StateSlot> slots = state_slots();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = *parameters_[i];
    state.set(parameter.name() + "/step", steps_of_[i]);
    for (const StateSlot& slot : slots) {
      const auto found = parameter.slots().find(slot.name);
      if (found == parameter.slots().end()) continue;
      // Where this optimizer has not begun, an earlier one's values count as zeros.
      if (!has_begun_[i] && !found->second.requires_dense) continue;
      const std::string name = parameter.name() + "/" + slot.name;
      Tensor saved = slot_to_saved(parameter, found->second);
      state.set(name, has_begun_[i] ? std::move(saved) : Tensor::full(saved.shape(), 0.0f));
      if (found->second.requires_dense && !slot.requires_dense) {
        state.set(name + kDenseMark, int64_t{1});
      }
    }
    if (ages_of_[i].empty()) continue;
    state.set(parameter.name() + "/" + kAge,
              ages_of_[i].to_saved(parameter, keeps_whole_ages(parameter)));
  }
  return state;
}

// The differences between this optimizer and a saved state, one line each.
std::vector<std::string> Optimizer::differences(const StateDict& state) const {
  std::vector<std::string> lines;
  std::set<std::string> expected{"type", "step"};
  const auto check_count = [&](const std::string& name, int64_t limit) {
    const int64_t* count = find_count(state, name);
    if (count == nullptr || *count < 0) {
      lines.push_back("'" + name + "' is missing or not a count");
    } else if (*count > limit) {
      lines.push_back(
          fmt::format("'{}' is {}, expected a count of at most {}", name, *count, limit));
    }
    return count == nullptr ? 0 : *count;
  };
  const auto check_array = [&](const std::string& name, const Parameter& parameter, bool is_dense) {
    const Tensor* saved = find_array(state, name);
    const std::vector<Shape> shapes = shapes_of_saved_slot(parameter, is_dense);
    if (saved == nullptr) {
      lines.push_back("'" + name + "' is missing or not an array of floats");
    } else if (std::ranges::find(shapes, saved->shape()) == shapes.end()) {
      lines.push_back("'" + name + "' has shape " + saved->shape().to_string() + ", expected " +
                      shapes.front().to_string() +
                      (parameter.pattern()->is_dense() || is_dense
                           ? ""
                           : ", or " + shapes.back().to_string() + " for its nonzeros"));
    } else {
      return true;
    }
    return false;
  };
  constexpr int64_t kMost = StateDict::kMostCounted;
  const int64_t taken = check_count("step", kMost);
  int64_t earlier = 0;
  if (state.contains(kEarlierSteps)) {
    expected.insert(kEarlierSteps);
    earlier = check_count(kEarlierSteps, kMost);
  }
  const int64_t most =
      taken < 0 || earlier < 0 ? kMost : std::min(taken, kMost / 2) + std::min(earlier, kMost / 2);
  for (const ParameterPtr& parameter : parameters_) {
    const std::string prefix = parameter->name() + "/";
    const int64_t steps = check_count(prefix + "step", most);
    expected.insert(prefix + "step");
    for (const StateSlot& slot : state_slots()) {
      const std::string name = prefix + slot.name;
      expected.insert(name);
      expected.insert(name + kDenseMark);
      const bool is_dense = slot.requires_dense || state.contains(name + kDenseMark);
      const int64_t* mark = find_count(state, name + kDenseMark);
      if (state.contains(name + kDenseMark) && (mark == nullptr || *mark != 1)) {
        lines.push_back("'" + name + kDenseMark + "' must be 1");
      }
      // A parameter that has not been updated yet has no states.
      if (!state.contains(name) && steps == 0) continue;
      check_array(name, *parameter, is_dense);
    }
    const std::string age = prefix + kAge;
    expected.insert(age);
    if (most_age() == 0 || !state.contains(age)) continue;
    const bool are_whole = std::ranges::any_of(state_slots(), [&](const StateSlot& slot) {
      return slot.requires_dense || state.contains(prefix + slot.name + kDenseMark);
    });
    if (check_array(age, *parameter, are_whole) && !WeightAges::are_ages(*find_array(state, age))) {
      lines.push_back(fmt::format("'{}' has values that are not whole numbers from 0 to {}", age,
                                  WeightAges::kMost));
    }
  }
  for (const auto& [name, value] : state.values()) {
    if (!expected.contains(name)) lines.push_back("'" + name + "' is unexpected");
  }
  return lines;
}

// Ages that this optimizer does not keep are ignored. If none were saved, all weights have the age
// of the parameter. *Requires* the states to be loaded.
void Optimizer::load_ages(size_t index, const StateDict& state) {
  const Parameter& parameter = *parameters_[index];
  ages_of_[index].clear();
  const Tensor* saved = find_array(state, parameter.name() + "/" + kAge);
  if (saved == nullptr || most_age() == 0) return;
  ages_of_[index].from_saved(parameter, *saved, keeps_whole_ages(parameter));
}

void Optimizer::load_state_dict(const StateDict& state) {
  const auto& saved_type = state.get<std::string>("type");
  if (saved_type != type()) {
    throw CheckpointError("the saved optimizer is '" + saved_type + "', this one is '" +
                          std::string(type()) + "'");
  }
  const std::vector<std::string> lines = differences(state);
  if (!lines.empty()) {
    throw CheckpointError("the saved optimizer state does not fit: " + join_foreign(lines, "; "));
  }
  steps_ = state.get<int64_t>("step");
  earlier_steps_ = state.contains(kEarlierSteps) ? state.get<int64_t>(kEarlierSteps) : 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = *parameters_[i];
    steps_of_[i] = state.get<int64_t>(parameter.name() + "/step");
    has_begun_[i] = true;
    for (const StateSlot& slot : state_slots()) {
      const std::string name = parameter.name() + "/" + slot.name;
      const Tensor* saved = find_array(state, name);
      const bool is_dense = slot.requires_dense || state.contains(name + kDenseMark);
      if (saved == nullptr) {
        parameter.slots().erase(slot.name);
      } else {
        parameter.slots()[slot.name] = {slot_from_saved(parameter, *saved, is_dense), is_dense};
      }
    }
    load_ages(i, state);
  }
}

}  // namespace lacuna
