#include "lacuna/sparsity/gmp.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

Gmp::Gmp(DynamicOptions options) : Gmp(std::move(options), "gmp") {}

Gmp::Gmp(DynamicOptions given, const std::string& type) : DynamicPatternAlgorithm(given) {
  if (given.drop_fraction) {
    throw ConfigError(type +
                      ": takes no drop_fraction; the sparsity schedule says what is dropped");
  }
  if (options().sparsity.is_constant()) {
    throw ConfigError(type +
                      ": a constant sparsity never changes the mask; use algorithm 'static', or "
                      "give a sparsity schedule");
  }
}

Positions Gmp::update_positions(const Parameter& parameter, const Positions& present, float) {
  return competition(parameter).thin(present, scores(parameter), target_nnz(parameter));
}

std::vector<float> Gmp::scores(const Parameter& parameter) const {
  return magnitudes(parameter.compacted(parameter.values()).storage());
}

void Gmp::foresee(std::vector<PlannedParameter>& planned, int64_t steps) const {
  DynamicSparsityAlgorithm::foresee(planned, steps);
  if (planned.empty()) return;
  std::vector<Shape> shapes;
  for (const PlannedParameter& parameter : planned) shapes.push_back(parameter.shape);
  const std::vector<int64_t>& at = planned.front().update_steps;
  const auto before = static_cast<int64_t>(at.size()) - (update_schedule().is_update(0) ? 0 : 1);
  const std::vector<int64_t> targets = targets_at(at.back(), before, shapes);
  for (size_t i = 0; i < planned.size(); ++i) {
    const PlannedParameter& p = planned[i];
    if (targets[i] <= p.final_nnz || p.final_nnz == p.initial_nnz) continue;
    throw ConfigError(std::string(type()) + ": the sparsity falls before the last update at step " +
                      std::to_string(at.back()) + ", when '" + p.parameter + "' has " +
                      std::to_string(p.final_nnz) + " nonzeros left and could have " +
                      std::to_string(targets[i]) + "; what is pruned stays pruned");
  }
}

int64_t Gmp::nnz_after_update(int64_t nnz, int64_t target, int64_t, int64_t, int64_t) const {
  return std::min(nnz, target);
}

}  // namespace lacuna
