#include "lacuna/sparsity/straight_through.h"

#include <algorithm>
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
    const Tensor gradient = adjusted_gradient(*parameter, dense_gradient(*parameter));
    const Slot& shadow = parameter->dense_slot(kShadow);
    patterns_.push_back(parameter->pattern());
    parameter->set_gradient_observer(nullptr);  // what follows is no gradient to observe
    parameter->zero_gradient();
    parameter->set_pattern(Pattern::dense(parameter->shape()));
    parameter->assign(shadow.values);
    parameter->accumulate(gradient);
  }
}

void StraightThrough::after_step(Optimizer& optimizer) {
  for (size_t i = 0; i < parameters().size(); ++i) {
    Parameter& parameter = *parameters()[i];
    std::ranges::copy(parameter.values().storage(),
                      parameter.dense_slot(kShadow).values.mutable_storage().begin());
    for (auto& [name, slot] : parameter.slots()) slot.requires_dense = true;
    parameter.zero_gradient();  // it was the master's
    parameter.set_pattern(patterns_[i]);
  }
  patterns_.clear();
  stop_observing();
  DynamicSparsityAlgorithm::after_step(optimizer);
}

void StraightThrough::update(Optimizer& optimizer) {
  DynamicSparsityAlgorithm::update(optimizer);
  for (const ParameterPtr& parameter : parameters()) {
    parameter->assign(parameter->dense_slot(kShadow).values);
  }
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
