#include "lacuna/sparsity/options/target.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/options/group_count.hpp"

namespace lacuna {

SparsityTarget::SparsityTarget(Schedule sparsity) : sparsity_(std::move(sparsity)) {
  if (sparsity_.is_constant() && std::isnan(sparsity_.value_at(0))) {
    throw ConfigError("sparsity must be a number in [0, 1], found NaN");
  }
}

SparsityTarget SparsityTarget::density(double density) {
  if (!(density > 0.0 && density <= 1.0)) {
    throw ConfigError("density must be in (0, 1], found " + Config(density).text());
  }
  SparsityTarget target;
  target.density_ = density;
  return target;
}

SparsityTarget SparsityTarget::fan_in(double fan_in) {
  if (!(fan_in > 0.0)) {
    throw ConfigError("fan_in must be above 0, found " + Config(fan_in).text());
  }
  SparsityTarget target;
  target.fan_in_ = fan_in;
  return target;
}

namespace {

// For a percentage the message gives the fraction.
void refuse_percentage(const Config& value, std::string_view expected) {
  const auto number = value.as<double>();
  if (!(number > 2.0 && number < 100.0)) return;
  value.fail(fmt::format("{}, as {:.6g} for {} %", expected, number / 100.0, value.text()));
}

}  // namespace

SparsityTarget SparsityTarget::from_config(const Config& entry) {
  std::string given;
  for (const char* key : {"sparsity", "schedule", "density", "fan_in"}) {
    if (!entry.has(key)) continue;
    if (!given.empty()) {
      entry.get(key).error("`" + given + "` and `" + key + "` are both given; give one of them");
    }
    given = key;
  }
  if (given.empty()) return {};
  const Config value = entry.at(given);
  if (given == "density") {
    refuse_percentage(value, "a density in (0, 1]");
    return density(require_range(entry, given, value.as<double>(), 1e-12, 1.0));
  }
  if (given == "fan_in") {
    return fan_in(require_range(entry, given, value.as<double>(), 1e-9, 1e18));
  }
  if (value.is_number()) refuse_percentage(value, "a sparsity in [0, 1)");
  if (value.is_number()) require_range(entry, given, value.as<double>(), 0.0, 1.0);
  return SparsityTarget(Schedule::from_config(value));
}

bool SparsityTarget::is_below_one() const {
  if (density_ || fan_in_) return true;
  const double sparsity = sparsity_.value_at(0);
  return sparsity >= 0.0 && sparsity < 1.0;
}

double SparsityTarget::sparsity_at(int64_t step, int64_t updates, const Shape& shape) const {
  if (density_) return 1.0 - *density_;
  if (fan_in_) {
    const auto rows = static_cast<double>(shape.rank() == 0 ? 1 : shape[0]);
    const auto numel = static_cast<double>(std::max<int64_t>(shape.numel(), 1));
    return std::max(0.0, 1.0 - *fan_in_ * rows / numel);
  }
  return std::clamp(sparsity_.value_at(step, updates), 0.0, 1.0);
}

std::vector<int64_t> SparsityTarget::nnz_at(int64_t step, int64_t updates,
                                            const std::vector<Shape>& shapes,
                                            const Distribution& distribution,
                                            const ScoreGroups& groups) const {
  std::vector<int64_t> counts;
  if (fan_in_) {
    for (const Shape& shape : shapes) {
      const auto rows = static_cast<double>(shape.rank() == 0 ? 1 : shape[0]);
      counts.push_back(std::min(static_cast<int64_t>(*fan_in_ * rows), shape.numel()));
    }
  } else if (density_) {
    counts = distribute_density(distribution, *density_, shapes);
  } else if (distribution.kind == Distribution::Kind::Uniform) {
    const float sparsity = sparsity_.at(step, updates);
    for (const Shape& shape : shapes) {
      const int64_t of_groups = count_of_groups(groups, shape);
      counts.push_back(target_nnz(sparsity, shape.numel() / of_groups) * of_groups);
    }
  } else {
    counts =
        distribute_nnz(distribution, std::clamp(sparsity_.at(step, updates), 0.0f, 1.0f), shapes);
  }
  for (size_t i = 0; i < counts.size(); ++i)
    counts[i] -= counts[i] % count_of_groups(groups, shapes[i]);
  return counts;
}

}  // namespace lacuna
