#include "lacuna/sparsity/snip.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

Snip::Snip(Options given) : SparsityAlgorithm(std::move(given.common)), global_(given.global) {
  const SparsityTarget& target = options().sparsity;
  if (!target.is_constant() ||
      !(target.schedule().at(0) >= 0.0f && target.schedule().at(0) < 1.0f)) {
    throw ConfigError("snip: the sparsity must be a constant in [0, 1): it prunes once");
  }
  if (global_ && options().structure.exists()) {
    throw ConfigError("snip: a global competition does not go with a pattern; set scope: layer");
  }
}

double Snip::target_sparsity(const Parameter& parameter) const {
  return global_ ? options().sparsity.sparsity_at(0, 0, parameter.shape())
                 : SparsityAlgorithm::target_sparsity(parameter);
}

void Snip::before_step(Optimizer&) {
  if (step() > 0) return;
  std::vector<std::vector<float>> scores;
  for (const ParameterPtr& parameter : parameters()) {
    const Tensor gradient = parameter->compacted(parameter->gradient());
    scores.push_back(
        products(parameter->compacted(parameter->values()).storage(), gradient.storage()));
  }
  const std::vector<int64_t> counts = choose_counts(scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    Parameter& parameter = *parameters()[i];
    set_positions(parameter, competition(parameter).keep(parameter.pattern()->positions(),
                                                         scores[i], counts[i]));
  }
}

// How many each parameter keeps: its target, or its share of the largest over all parameters.
std::vector<int64_t> Snip::choose_counts(const std::vector<std::vector<float>>& scores) const {
  std::vector<int64_t> counts;
  if (!global_) {
    for (const ParameterPtr& parameter : parameters()) counts.push_back(target_nnz(*parameter));
    return counts;
  }
  std::vector<float> all;
  for (const std::vector<float>& part : scores) all.insert(all.end(), part.begin(), part.end());
  const BitMask kept = top_k(all, global_count(static_cast<int64_t>(all.size())));
  int64_t begin = 0;
  for (const std::vector<float>& part : scores) {
    int64_t count = 0;
    for (size_t i = 0; i < part.size(); ++i) {
      count += kept.test(begin + static_cast<int64_t>(i)) ? 1 : 0;
    }
    counts.push_back(count);
    begin += static_cast<int64_t>(part.size());
  }
  return counts;
}

// A global competition is decided by gradients: what can be foreseen is the mean.
void Snip::foresee(std::vector<PlannedParameter>& planned, int64_t) const {
  std::vector<Shape> shapes;
  int64_t total = 0;
  for (const PlannedParameter& parameter : planned) {
    shapes.push_back(parameter.shape);
    total += parameter.shape.numel();
  }
  if (global_ && global_count(total) == 0 && total > 0) {
    throw ConfigError("snip: of all " + std::to_string(total) +
                      " elements none is kept, for their number is rounded down; give a lower "
                      "sparsity");
  }
  const std::vector<int64_t> targets = targets_at(0, 0, shapes);
  for (size_t i = 0; i < planned.size(); ++i) {
    planned[i].final_nnz = std::min(planned[i].final_nnz, targets[i]);
    planned[i].update_steps = {1};
  }
}

int64_t Snip::global_count(int64_t numel) const {
  const double sparsity = options().sparsity.sparsity_at(0, 0, Shape{numel});
  return lacuna::target_nnz(static_cast<float>(sparsity), numel);
}

}  // namespace lacuna
