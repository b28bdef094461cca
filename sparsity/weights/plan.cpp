#include "lacuna/sparsity/weights/plan.h"

namespace lacuna {

double mean_nnz(std::span<const PlannedParameter* const> entries, int64_t total_steps,
                const std::function<double(int64_t step)>& examples_until) {
  std::vector<PlannedCount> counts;
  if (entries.front()->begin > 0) counts.push_back({0, entries.front()->nnz_before});
  for (const PlannedParameter* entry : entries) {
    counts.push_back({entry->begin, entry->initial_nnz});
    counts.insert(counts.end(), entry->changes.begin(), entry->changes.end());
  }
  const double all = examples_until(total_steps);
  if (all <= 0.0) return static_cast<double>(counts.back().nnz);
  double sum = 0.0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t last = i + 1 < counts.size() ? counts[i + 1].step : total_steps;
    const double examples = examples_until(last) - examples_until(counts[i].step);
    sum += static_cast<double>(counts[i].nnz) * examples;
  }
  return sum / all;
}

}  // namespace lacuna
