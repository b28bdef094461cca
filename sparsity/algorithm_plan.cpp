// What an algorithm plans, before any training.
#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/algorithm.h"
#include "lacuna/sparsity/weights/target_checks.hpp"

namespace lacuna {

std::vector<PlannedParameter> SparsityAlgorithm::plan(int64_t total_steps) const {
  Forecast begun{.steps = total_steps};
  for (const SparseWeight& weight : weights_) {
    begun.parameters.push_back(
        {.parameter = weight.name(),
         .shape = weight.shape(),
         .algorithm = {},
         .chosen_by = {},
         .initial_nnz = weight.nnz(),
         .final_nnz = weight.nnz(),
         .update_steps = {},
         .layout = std::string(weight.parameter().pattern()->layout().name()),
         .source = &weight.parameter()});
  }
  return plan(std::move(begun));
}

std::vector<PlannedParameter> SparsityAlgorithm::plan(Forecast begun) const {
  require_fan_in_fits(type(), options_.sparsity, begun);
  forecast(begun);
  for (PlannedParameter& planned : begun.parameters) {
    const bool is_of_a_part = !planned.final_layout.empty();
    if (!is_of_a_part) complete(planned, begun.is_exact);
  }
  return std::move(begun.parameters);
}

void SparsityAlgorithm::complete(PlannedParameter& planned, bool is_exact) const {
  const bool is_empty = planned.initial_nnz == 0 || planned.final_nnz == 0;
  if (is_exact && is_empty && planned.shape.numel() > 0) {
    throw ConfigError(std::string(type()) + ": parameter '" + planned.parameter + "' of shape " +
                      planned.shape.to_string() + (planned.initial_nnz == 0 ? " begins" : " ends") +
                      " without any nonzero, because their number is rounded down; make it less "
                      "sparse, or leave it out");
  }
  if (planned.changes.empty() && !planned.update_steps.empty()) {
    planned.changes = {{planned.update_steps.front(), planned.final_nnz}};
  }
  planned.algorithm = type();
  if (planned.chosen_by.empty()) planned.chosen_by = filter().description();
  planned.lifetime = layouts_.lifetime();
  planned.pattern = layouts_.pattern();
  planned.compressed = layouts_.compressed(*planned.source).name();
  if (planned.layout.empty()) {
    planned.layout = layouts_.foresee(*planned.source, planned.initial_nnz).name();
  }
  planned.final_layout = layouts_.foresee(*planned.source, planned.final_nnz).name();
}

// Masks to be inherited where nothing has any: nothing would be pruned, without a word.
void SparsityAlgorithm::require_inherited(const Forecast& forecast) const {
  if (!options_.init_method.inherits() || forecast.source != MaskSource::Made) return;
  const std::vector<int64_t> targets = options_.targets_at(0, 0, forecast.shapes());
  for (size_t i = 0; i < targets.size(); ++i) {
    const PlannedParameter& planned = forecast.parameters[i];
    if (std::min(planned.initial_nnz, targets[i]) < planned.shape.numel()) return;
  }
  throw ConfigError(
      std::string(type()) +
      ": init_method 'inherit' takes the masks that parameters have, and these are dense; give "
      "model.init_from a run or checkpoint with masks, or `sparsity`, or another init_method");
}

void SparsityAlgorithm::forecast(Forecast& forecast) const {
  require_fraction(type(), options_.sparsity, 0, 0);
  require_inherited(forecast);
  if (forecast.source == MaskSource::Inherited) {
    const std::vector<int64_t> targets = options_.targets_at(0, 0, forecast.shapes());
    for (size_t i = 0; i < targets.size(); ++i) {
      PlannedParameter& planned = forecast.parameters[i];
      planned.initial_nnz = std::min(planned.initial_nnz, targets[i]);
    }
  }
  for (PlannedParameter& planned : forecast.parameters) planned.final_nnz = planned.initial_nnz;
}

}  // namespace lacuna
