#include "lacuna/sparsity/weights/target_checks.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/plural.hpp"

namespace lacuna {

void require_fan_in_fits(std::string_view type, const SparsityTarget& target,
                         const Forecast& forecast) {
  if (!target.has_fan_in()) return;
  // What a row gets that is long enough for any.
  const Shape endless{1, int64_t{1} << 60};
  const int64_t fan_in =
      target.nnz_at(0, 0, {endless}, Distribution(), ScoreGroups::flat()).front();
  for (const PlannedParameter& planned : forecast.parameters) {
    const int64_t rows = planned.shape.rank() == 0 ? 1 : planned.shape[0];
    if (rows == 0 || fan_in <= planned.shape.numel() / rows) continue;
    throw ConfigError(fmt::format(
        "{}: a fan_in of {} exceeds the {} of each row of parameter '{}' of shape {}, which would "
        "stay dense; give a smaller one, or exclude the parameter with param_filter",
        type, fan_in, plural(planned.shape.numel() / rows, "input"), planned.parameter,
        planned.shape.to_string()));
  }
}

float require_fraction(std::string_view type, std::string_view what, float value, int64_t step) {
  constexpr float kRounding = 1e-5f;
  if (value >= -kRounding && value <= 1.0f + kRounding) return std::clamp(value, 0.0f, 1.0f);
  throw ConfigError(fmt::format("{}: the {} is {} at step {}, expected a fraction from 0 to 1",
                                type, what, Config(value).text(), step));
}

void require_fraction(std::string_view type, const SparsityTarget& target, int64_t step,
                      int64_t updates) {
  require_fraction(type, "sparsity", target.schedule().at(step, updates), step);
}

std::string with_nonzeros(const SparseWeight& weight) {
  return fmt::format("parameter '{}' {} with {}", weight.name(), weight.shape().to_string(),
                     plural(weight.target_nnz(), "nonzero"));
}

void require_values_fit(const std::deque<SparseWeight>& weights) {
  const auto memory = static_cast<double>(total_memory());
  for (const SparseWeight& weight : weights) {
    const double bytes = static_cast<double>(weight.target_nnz()) * sizeof(float);
    if (bytes <= memory) continue;
    throw MemoryError(fmt::format(
        "{}: out of memory: {:.1f} MB more were requested, and there are {:.1f} MB in all",
        with_nonzeros(weight), bytes / 1e6, memory / 1e6));
  }
}

}  // namespace lacuna
