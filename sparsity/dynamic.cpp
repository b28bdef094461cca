#include "lacuna/sparsity/dynamic.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

SparsityOptions common_options(DynamicOptions& o) {
  return {.sparsity = std::move(o.sparsity),
          .init_method = std::move(o.init_method),
          .param_filter = std::move(o.param_filter),
          .groups = o.groups,
          .distribution = o.distribution,
          .seed = o.seed};
}

}  // namespace

DynamicOptions DynamicOptions::from_config(const Config& entry, uint64_t seed) {
  SparsityOptions common = SparsityOptions::from_config(entry, seed);
  return {.sparsity = std::move(common.sparsity),
          .init_method = std::move(common.init_method),
          .param_filter = std::move(common.param_filter),
          .groups = common.groups,
          .distribution = common.distribution,
          .seed = seed,
          .update = UpdateSchedule::from_config(entry.get("update")),
          .drop_fraction = std::nullopt};
}

DynamicSparsityAlgorithm::DynamicSparsityAlgorithm(DynamicOptions options)
    : SparsityAlgorithm(common_options(options)),
      update_schedule_(std::move(options.update)),
      drop_fraction_(options.drop_fraction.value_or(Schedule(0.3))) {}

DynamicSparsityAlgorithm::~DynamicSparsityAlgorithm() {
  forward_hook_.remove();
  stop_observing();
}

void DynamicSparsityAlgorithm::on_apply(Module& module) {
  if (update_schedule_.is_update(0)) count_update();  // the first masks are the first update
  forward_hook_ = module.register_forward_pre_hook([this](Module&) {
    if (grad_enabled() && wants_dense_gradient(step() + 1)) observe_gradients();
  });
}

BitMask DynamicSparsityAlgorithm::initial_mask(const Parameter& parameter) {
  if (!update_schedule_.is_update(0)) return BitMask::ones(parameter.numel());
  return SparsityAlgorithm::initial_mask(parameter);
}

void DynamicSparsityAlgorithm::update(Optimizer&) {
  count_step();
  if (!update_schedule_.is_update(step())) return;
  refresh_targets();
  for (const ParameterPtr& parameter : parameters()) {
    set_mask(*parameter, update_mask(*parameter, parameter->pattern()->mask(),
                                     static_cast<float>(target_sparsity(*parameter))));
  }
  count_update();
  stop_observing();
}

void DynamicSparsityAlgorithm::observe_gradients() {
  if (!gradients_.empty()) return;  // an earlier micro-batch of this step has asked already
  for (const ParameterPtr& parameter : parameters()) {
    auto observer = std::make_shared<DenseGradient>();
    parameter->set_gradient_observer(observer);
    gradients_[parameter.get()] = std::move(observer);
  }
}

void DynamicSparsityAlgorithm::stop_observing() {
  for (const ParameterPtr& parameter : parameters()) {
    if (gradients_.contains(parameter.get())) parameter->set_gradient_observer(nullptr);
  }
  gradients_.clear();
}

const Tensor& DynamicSparsityAlgorithm::dense_gradient(const Parameter& parameter) const {
  const auto found = gradients_.find(&parameter);
  if (found == gradients_.end() || !found->second->sum().defined()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' needs the dense gradient of '" + parameter.name() + "' at step " +
                     std::to_string(step()) +
                     ", which was not asked for before the forward pass: run forward and backward "
                     "through the module it was applied to, with wants_dense_gradient true for "
                     "this step");
  }
  return found->second->sum();
}

float DynamicSparsityAlgorithm::drop_fraction() const {
  return std::clamp(drop_fraction_.at(step(), updates()), 0.0f, 1.0f);
}

}  // namespace lacuna
