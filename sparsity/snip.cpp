#include "lacuna/sparsity/snip.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/select/kth_largest.hpp"
#include "lacuna/sparsity/options/counting.hpp"

namespace lacuna {

Snip::Snip(Options given) : SparsityAlgorithm(std::move(given.common)), global_(given.global) {
  options().require_no_updates(type());
  const SparsityTarget& target = options().sparsity;
  if (!target.is_constant() || !target.is_below_one()) {
    throw ConfigError("snip: the sparsity must be a constant in [0, 1): it prunes once");
  }
  if (global_ && options().pattern.is_structured()) {
    throw ConfigError(
        "snip: a global competition cannot be combined with a pattern; set scope: layer");
  }
}

MaskSet Snip::initial_mask(const SparseWeight& weight, MaskSource source) {
  if (source == MaskSource::Made) return MaskSet::all(weight.shape());
  const MaskSet present = weight.mask();  // pruned at the first step, and not by |w| before it
  if (weight.selector().fit(present) != MaskSelector::Fit::None) return present;
  return SparsityAlgorithm::initial_mask(weight, source);
}

void Snip::before_step(Optimizer&, StepScopes&) {
  if (step() > 0) return;
  std::vector<Tensor> scores;
  for (const SparseWeight& weight : weights()) {
    const Parameter& parameter = weight.parameter();
    scores.push_back(
        magnitudes_of_products(weight.elements(), parameter.compacted(parameter.gradient())));
  }
  const std::vector<int64_t> counts = choose_counts(scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    SparseWeight& weight = weights()[i];
    set_mask(weight, weight.selector().keep(weight.mask(), scores[i].storage(), counts[i]));
  }
}

// How many each parameter keeps: its target, or its share of the largest over all parameters.
std::vector<int64_t> Snip::choose_counts(const std::vector<Tensor>& scores) const {
  std::vector<int64_t> counts;
  if (!global_) {
    for (const SparseWeight& weight : weights()) counts.push_back(weight.target_nnz());
    return counts;
  }
  std::vector<float> all;
  for (const Tensor& part : scores) {
    all.insert(all.end(), part.storage().begin(), part.storage().end());
  }
  int64_t numel = 0;  // masks that were inherited leave fewer scores than elements
  for (const SparseWeight& weight : weights()) numel += weight.numel();
  const auto present = static_cast<int64_t>(all.size());
  const BitMask kept = largest_mask(all, std::min(global_count(numel), present));
  int64_t begin = 0;
  for (const Tensor& part : scores) {
    int64_t count = 0;
    for (int64_t i = 0; i < part.numel(); ++i) count += kept.test(begin + i) ? 1 : 0;
    counts.push_back(count);
    begin += part.numel();
  }
  return counts;
}

// A global competition is decided by gradients: what can be foreseen is the mean.
void Snip::forecast(Forecast& forecast) const {
  forecast.is_exact = !global_;
  std::vector<int64_t> present;  // stays until the first step
  for (const PlannedParameter& planned : forecast.parameters) {
    present.push_back(planned.initial_nnz);
  }
  SparsityAlgorithm::forecast(forecast);
  const std::vector<Shape> shapes = forecast.shapes();
  int64_t total = 0;
  for (const Shape& shape : shapes) total += shape.numel();
  if (global_ && global_count(total) == 0 && total > 0) {
    throw ConfigError(
        fmt::format("snip: of all {} elements none is kept, because their number is rounded down; "
                    "give a lower sparsity",
                    total));
  }
  const std::vector<int64_t> targets = options().targets_at(0, 0, shapes);
  for (size_t i = 0; i < targets.size(); ++i) {
    PlannedParameter& planned = forecast.parameters[i];
    planned.initial_nnz = present[i];
    planned.final_nnz = std::min(present[i], targets[i]);
    planned.update_steps = {1};
  }
}

int64_t Snip::global_count(int64_t numel) const {
  const double sparsity = options().sparsity.sparsity_at(0, 0, Shape{numel});
  return lacuna::target_nnz(static_cast<float>(sparsity), numel);
}

}  // namespace lacuna
