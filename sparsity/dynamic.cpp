#include "lacuna/sparsity/dynamic.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

DynamicSparsityAlgorithm::DynamicSparsityAlgorithm(DynamicOptions given, PatternLifetime lifetime)
    : SparsityAlgorithm(std::move(given), lifetime) {
  if (keeps_alive() && options().pattern.is_structured()) {
    throw ConfigError("keep_alive does not go with a pattern (" + options().pattern.description() +
                      ")");
  }
}

void DynamicSparsityAlgorithm::adopt(Module& module, std::vector<ParameterPtr> parameters,
                                     MaskSource source) {
  take_charge(std::move(parameters));
  begin(module, source, GradientRoute::Both);
}

void DynamicSparsityAlgorithm::begin(Module& module, MaskSource source, GradientRoute route) {
  if (update_schedule().is_update(0)) count_update();  // the first masks are the first update
  keep_hook(module.register_forward_pre_hook([this, route](Module&) {
    if (!grad_enabled() || !wants_dense_gradient(step() + 1)) return;
    for (SparseWeight& weight : weights()) {
      // An earlier micro-batch of this step may have asked already.
      if (!weight.is_watched()) weight.watch_gradient(route);
    }
  }));
  start_masks(source);
}

MaskSet DynamicSparsityAlgorithm::initial_mask(const SparseWeight& weight, MaskSource source) {
  const bool is_full = source == MaskSource::Made && !update_schedule().is_update(0);
  return is_full ? MaskSet::all(weight.shape()) : SparsityAlgorithm::initial_mask(weight, source);
}

void DynamicSparsityAlgorithm::update(Optimizer&) {
  count_step();
  if (!update_schedule().is_update(step())) return;
  refresh_targets();
  for (SparseWeight& weight : weights()) {
    const MaskSet mask = weight.mask();
    set_mask(weight, update_mask(weight, mask, static_cast<float>(weight.target_sparsity())),
             &mask);
  }
  count_update();
  stop_watching();
}

void DynamicSparsityAlgorithm::stop_watching() {
  for (SparseWeight& weight : weights()) weight.stop_watching();
}

DenseGradient& DynamicSparsityAlgorithm::collected(const SparseWeight& weight) const {
  if (DenseGradient* gradient = weight.gradient()) return *gradient;
  throw StateError(
      fmt::format("sparsity algorithm '{}' needs the dense gradient of '{}' at step {}, which was "
                  "not asked for before the forward pass: run forward and backward through the "
                  "module it was applied to, with wants_dense_gradient true for this step",
                  type(), weight.name(), step()));
}

DenseGradient& DynamicSparsityAlgorithm::whole_gradient(const SparseWeight& weight) const {
  constexpr int64_t kMost = int64_t{1} << 31;
  DenseGradient& gradient = collected(weight);
  if (weight.numel() > kMost) {
    throw StateError(
        fmt::format("sparsity algorithm '{}' asks for the dense gradient of '{}', which has {} "
                    "elements; above 2^31 read it by rows, with gradient_rows",
                    type(), weight.name(), weight.numel()));
  }
  return gradient;
}

const Tensor& DynamicSparsityAlgorithm::dense_gradient(const SparseWeight& weight) const {
  return whole_gradient(weight).sum();
}

Tensor DynamicSparsityAlgorithm::take_dense_gradient(const SparseWeight& weight) const {
  return whole_gradient(weight).take_sum();
}

Scores DynamicSparsityAlgorithm::gradient_rows(const SparseWeight& weight) const {
  return collected(weight).scores();
}

CounterRng DynamicSparsityAlgorithm::rng(const SparseWeight& weight, const char* purpose) const {
  return CounterRng(options().seed, weight.name() + purpose, static_cast<uint64_t>(step()));
}

float DynamicSparsityAlgorithm::drop_fraction_at(int64_t step, int64_t updates) const {
  if (!options().drop_fraction) return 0.3f;
  return std::clamp(options().drop_fraction->at(step, updates), 0.0f, 1.0f);
}

}  // namespace lacuna
