#include "lacuna/sparsity/gmp.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/sparsity/weights/full_groups.hpp"

namespace lacuna {
namespace {

void require_schedule(const SparsityTarget& sparsity, const std::string& type) {
  if (!sparsity.is_constant()) return;
  throw ConfigError(type +
                    ": a constant sparsity never changes the mask; use algorithm 'static', or "
                    "give a sparsity schedule");
}

}  // namespace

Gmp::Gmp(DynamicOptions options)
    : Gmp(std::move(options), "gmp",
          [](const SparseWeight& weight) { return weight.magnitudes(); }) {}

Gmp::Gmp(DynamicOptions given, const std::string& type, Scores scores)
    : DynamicSparsityAlgorithm(given), scores_(scores) {
  if (given.drop_fraction) {
    throw ConfigError(type +
                      ": takes no drop_fraction; the sparsity schedule sets what is dropped");
  }
  require_schedule(options().sparsity, type);
}

void Gmp::require_settable(const SparsityTarget& sparsity) const {
  require_schedule(sparsity, std::string(type()));
}

FirstMasks Gmp::first_masks() const {
  return begins_pruned(options().sparsity) ? FirstMasks::Made : FirstMasks::Own;
}

MaskSet Gmp::initial_mask(const SparseWeight& weight, MaskSource source) {
  if (const auto mask =
          mask_with_full_groups(weight, source, options().init_method, options().seed))
    return *mask;
  return DynamicSparsityAlgorithm::initial_mask(weight, source);
}

MaskSet Gmp::update_mask(const SparseWeight& weight, const MaskSet& mask, float) {
  return weight.selector().prune_gradually(mask, scores_(weight).storage(), weight.target_nnz());
}

void Gmp::forecast(Forecast& forecast) const {
  DynamicSparsityAlgorithm::forecast(forecast);
  if (forecast.parameters.empty()) return;
  const std::vector<int64_t>& at = forecast.parameters.front().update_steps;
  const auto before = static_cast<int64_t>(at.size()) - (update_schedule().is_update(0) ? 0 : 1);
  const std::vector<int64_t> targets = options().targets_at(at.back(), before, forecast.shapes());
  for (size_t i = 0; i < targets.size(); ++i) {
    const PlannedParameter& p = forecast.parameters[i];
    if (targets[i] <= p.final_nnz || p.final_nnz == p.initial_nnz) continue;
    throw ConfigError(
        fmt::format("{}: the sparsity falls before the last update at step {}, when '{}' has {} "
                    "left and could have {}; pruned weights stay pruned",
                    type(), at.back(), p.parameter, plural(p.final_nnz, "nonzero"), targets[i]));
  }
}

int64_t Gmp::nnz_after_update(const MaskSelector&, int64_t nnz, int64_t target, float) const {
  return std::min(nnz, target);
}

Saliency::Saliency(DynamicOptions options)
    : Gmp(std::move(options), "saliency", [](const SparseWeight& weight) {
        const Parameter& parameter = weight.parameter();
        return magnitudes_of_products(weight.elements(), parameter.compacted(parameter.gradient()));
      }) {}

}  // namespace lacuna
