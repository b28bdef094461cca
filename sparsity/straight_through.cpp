#include "lacuna/sparsity/straight_through.h"

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {
namespace {

constexpr const char* kShadow = "shadow";

}  // namespace

StraightThrough::StraightThrough(DynamicOptions given) : DynamicSparsityAlgorithm(given) {
  if (given.drop_fraction) {
    throw ConfigError("ste: takes no drop_fraction; the sparsity schedule says what is dropped");
  }
}

StraightThrough::~StraightThrough() { StraightThrough::release(); }

// The shadow begins as the whole weight, before the first mask prunes it.
void StraightThrough::on_apply(Module& module) {
  DynamicSparsityAlgorithm::on_apply(module);
  for (const ParameterPtr& parameter : parameters()) {
    parameter->dense_slot(kShadow).values = parameter->to_dense();
  }
}

// The parameters go on with their sparse values and sparse states.
void StraightThrough::release() {
  for (const ParameterPtr& parameter : parameters()) {
    parameter->slots().erase(kShadow);
    const Pattern& pattern = *parameter->pattern();
    for (auto& [name, slot] : parameter->slots()) {
      if (std::exchange(slot.requires_dense, false) && !pattern.is_flat()) {
        const Tensor whole =
            std::exchange(slot.values, Tensor::empty(Shape{pattern.stored_size()}));
        pattern.layout().from_dense(pattern, whole.storage(), slot.values.mutable_storage());
      }
    }
    parameter->prune();
  }
  DynamicSparsityAlgorithm::release();
}

StateDict StraightThrough::state_dict() const {
  StateDict state = DynamicSparsityAlgorithm::state_dict();
  for (const ParameterPtr& parameter : parameters()) {
    state.set(std::string(kShadow) + "/" + parameter->name(),
              parameter->dense_slot(kShadow).values.clone());
  }
  return state;
}

void StraightThrough::load_state_dict(const StateDict& state) {
  DynamicSparsityAlgorithm::load_state_dict(state);
  for (const ParameterPtr& parameter : parameters()) {
    parameter->dense_slot(kShadow).values = saved_array(state, kShadow, *parameter);
    for (auto& [name, slot] : parameter->slots()) slot.requires_dense = true;
  }
}

const Tensor& StraightThrough::master(const Parameter& parameter) {
  return parameter.slots().at(kShadow).values;
}

void StraightThrough::before_step(Optimizer&) {
  patterns_.clear();
  for (const ParameterPtr& parameter : parameters()) {
    Tensor gradient = take_dense_gradient(*parameter);
    adjust_gradient(*parameter, gradient);
    patterns_.push_back(parameter->pattern());
    // The optimizer changes the shadow itself: both share one array.
    parameter->replace(Pattern::dense(parameter->shape()), master(*parameter), std::move(gradient));
  }
}

void StraightThrough::after_step(Optimizer& optimizer) {
  // An update that follows takes new values from the shadow anyway.
  const bool updates = autoupdate && update_schedule().is_update(step() + 1);
  for (size_t i = 0; i < parameters().size(); ++i) {
    Parameter& parameter = *parameters()[i];
    for (auto& [name, slot] : parameter.slots()) slot.requires_dense = true;
    if (updates) {
      parameter.replace(patterns_[i], Tensor::empty(patterns_[i]->stored_shape()));
    } else {
      use_master(parameter, patterns_[i], master(parameter));
    }
  }
  patterns_.clear();
  stop_observing();
  DynamicSparsityAlgorithm::after_step(optimizer);
}

BitMask StraightThrough::update_mask(const Parameter& parameter, const BitMask&, float) {
  const GroupIndex index = groups(parameter);
  const Tensor& shadow = master(parameter);
  if (options().structure.exists()) {
    return competition(parameter)
        .thin(Positions::all(parameter.shape()), magnitudes(shadow.storage()),
              target_nnz(parameter))
        .to_mask();
  }
  return top_k(magnitudes(shadow.storage()), target_nnz(parameter) / index.count(),
               BitMask::ones(parameter.numel()), index);
}

}  // namespace lacuna
