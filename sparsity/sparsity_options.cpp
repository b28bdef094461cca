#include "lacuna/sparsity/sparsity_options.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/options/group_count.hpp"

namespace lacuna {
namespace {

// Sparsities of N:M patterns that are written as decimals.
constexpr double kSparsityTolerance = 1e-4;

}  // namespace

SparsityOptions SparsityOptions::from_config(const Config& entry, uint64_t seed, FirstMask first) {
  const Config init_method = first == FirstMask::Chosen ? entry.get("init_method") : Config();
  SparsityOptions options{.sparsity = SparsityTarget::from_config(entry),
                          .init_method = InitMethod::from_config(init_method),
                          .param_filter = ParameterFilter::from_config(entry.get("param_filter")),
                          .groups = {},
                          .pattern = PatternShape::from_config(entry.get("pattern")),
                          .distribution = Distribution::from_config(entry.get("distribution")),
                          .layout = {},
                          .seed = seed,
                          .update = {},
                          .drop_fraction = {}};
  // Left out, N:M sets it; 0 in C++ is the same, but a user who writes 0 means something else.
  const Config given = entry.get("sparsity");
  if (options.pattern.is_nm() && given.is_number() && given.as<double>() == 0.0) {
    given.error("pattern " + options.pattern.description() + " has a sparsity of " +
                Config(1.0 - options.pattern.full_density()).text() + ": leave `sparsity` out");
  }
  options.layout = LayoutOption::from_config(entry, options.pattern);
  const auto in = entry.optional<int64_t>("balance_in_groups");
  const Config out = entry.get("balance_out_groups");
  if (in && !out.is_null()) {
    entry.get("balance_out_groups")
        .error("balance_in_groups and balance_out_groups are both given; give one of them");
  }
  if (in)
    options.groups = ScoreGroups::columns(require_at_least(entry, "balance_in_groups", *in, 1));
  if (out.is_scalar() && out.text() == "rows") {
    options.groups = each_row_a_group();
  } else if (!out.is_null()) {
    if (!out.is_number()) out.fail("a number of groups, or rows: each row is one");
    options.groups =
        ScoreGroups::rows(require_at_least(entry, "balance_out_groups", out.as<int64_t>(), 1));
  }
  return options;
}

SparsityOptions SparsityOptions::checked() const {
  if (sparsity.has_fan_in() && distribution.kind != Distribution::Kind::Uniform) {
    throw ConfigError(
        "fan_in gives each parameter its own number of nonzeros; leave distribution out, or give "
        "density");
  }
  if (!pattern.is_structured()) return *this;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("pattern " + pattern.description() + " " + why);
  };
  if (divides(groups)) refuse("cannot be combined with balance_in_groups or balance_out_groups");
  for (const char* method : {"balanced", "checkerboard"}) {
    if (init_method.name() == method) {
      refuse("cannot be combined with init_method '" + std::string(method) +
             "'; give random or topk");
    }
  }
  if (sparsity.has_fan_in()) refuse("cannot be combined with fan_in; give sparsity or density");
  if (!pattern.is_nm()) return *this;
  if (distribution.kind != Distribution::Kind::Uniform) {
    refuse("gives every parameter the same sparsity; leave distribution out");
  }
  if (!sparsity.is_constant()) return *this;
  const double implied = 1.0 - pattern.full_density();
  const double given = sparsity.sparsity_at(0, 0, Shape{});
  if (given != 0.0 && std::abs(given - implied) > kSparsityTolerance) {
    refuse("has a sparsity of " + Config(implied).text() + ": leave `sparsity` out, found " +
           Config(given).text());
  }
  SparsityOptions filled = *this;
  filled.sparsity = SparsityTarget::density(pattern.full_density());
  return filled;
}

namespace {

// Units that whole cells make of a target: a cell is full or has its quota.
int64_t nm_target(const PatternShape& pattern, int64_t wanted, int64_t units) {
  const int64_t n = pattern.n(), m = pattern.m(), cells = units / m, least = cells * n;
  const auto slack = static_cast<int64_t>(kSparsityTolerance * static_cast<double>(units)) + 1;
  if (wanted + slack < least) {
    throw ConfigError(
        "pattern " + pattern.description() + " allows a sparsity of at most " +
        Config(1.0 - pattern.full_density()).text() + ", but the schedule asks for " +
        Config(1.0 - static_cast<double>(wanted) / static_cast<double>(units)).text());
  }
  const int64_t pruned = std::min((units - wanted + m - n - 1) / (m - n), cells);
  return units - pruned * (m - n);
}

}  // namespace

std::vector<int64_t> SparsityOptions::targets_at(int64_t step, int64_t updates,
                                                 const std::vector<Shape>& shapes) const {
  if (!pattern.is_structured()) {
    return sparsity.nnz_at(step, updates, shapes, distribution, groups);
  }
  std::vector<Shape> units;
  for (const Shape& shape : shapes) units.push_back(pattern.units(shape));
  std::vector<int64_t> counts = sparsity.nnz_at(step, updates, units, distribution, groups);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (pattern.is_nm()) counts[i] = nm_target(pattern, counts[i], units[i].numel());
    counts[i] *= pattern.unit_size();
  }
  return counts;
}

void SparsityOptions::require_no_updates(std::string_view type) const {
  if (update == UpdateSchedule() && !drop_fraction && !keep_alive) return;
  throw ConfigError(std::string(type) +
                    ": takes no update, drop_fraction or keep_alive: its masks do not change");
}

}  // namespace lacuna
