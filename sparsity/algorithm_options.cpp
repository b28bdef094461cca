// What the options of an algorithm say: read, checked, and turned into numbers of nonzeros.
#include <algorithm>
#include <cmath>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {
namespace {

// Sparsities of N:M patterns that are written as decimals.
constexpr double kSparsityTolerance = 1e-4;

}  // namespace

SparsityOptions SparsityOptions::from_config(const Config& entry, uint64_t seed) {
  SparsityOptions options{.sparsity = SparsityTarget::from_config(entry),
                          .init_method = InitMethod::from_config(entry.get("init_method")),
                          .param_filter = ParameterFilter::from_config(entry.get("param_filter")),
                          .groups = {},
                          .structure = Structure::from_config(entry.get("pattern")),
                          .distribution = Distribution::from_config(entry.get("distribution")),
                          .layout = {},
                          .seed = seed};
  // Left out, it is what N:M says; 0 in C++ is the same, but who writes it means something else.
  const Config given = entry.get("sparsity");
  if (options.structure.is_nm() && given.is_number() && given.as<double>() == 0.0) {
    given.error("pattern " + options.structure.description() + " has a sparsity of " +
                Config(1.0 - options.structure.full_density()).text() + ": leave `sparsity` out");
  }
  options.layout = LayoutOption::from_config(entry, options.structure);
  const auto in = entry.optional<int64_t>("balance_in_groups");
  const auto out = entry.optional<int64_t>("balance_out_groups");
  if (in && out) {
    entry.get("balance_out_groups")
        .error("balance_in_groups and balance_out_groups are both given; give one of them");
  }
  if (in)
    options.groups = ScoreGroups::columns(require_at_least(entry, "balance_in_groups", *in, 1));
  if (out)
    options.groups = ScoreGroups::rows(require_at_least(entry, "balance_out_groups", *out, 1));
  return options;
}

SparsityAlgorithm::SparsityAlgorithm(SparsityOptions options) : options_(std::move(options)) {
  const Structure& structure = options_.structure;
  if (!structure.exists()) return;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("pattern " + structure.description() + " " + why);
  };
  if (options_.groups.count > 1) {
    refuse("does not go with balance_in_groups or balance_out_groups");
  }
  for (const char* method : {"balanced", "checkerboard"}) {
    if (options_.init_method.name() == method) {
      refuse("does not go with init_method '" + std::string(method) + "'; give random or topk");
    }
  }
  if (options_.sparsity.has_fan_in()) refuse("does not go with fan_in; give sparsity or density");
  if (!structure.is_nm()) return;
  if (options_.distribution.kind != Distribution::Kind::Uniform) {
    refuse("gives every parameter the same sparsity; leave distribution out");
  }
  if (!options_.sparsity.is_constant()) return;
  const double implied = 1.0 - structure.full_density();
  const double given = options_.sparsity.sparsity_at(0, 0, Shape{});
  if (given != 0.0 && std::abs(given - implied) > kSparsityTolerance) {
    refuse("has a sparsity of " + Config(implied).text() + ": leave `sparsity` out, found " +
           Config(given).text());
  }
  options_.sparsity = SparsityTarget::density(structure.full_density());
}

std::vector<int64_t> SparsityAlgorithm::targets_at(int64_t step, int64_t updates,
                                                   const std::vector<Shape>& shapes) const {
  const Structure& structure = options_.structure;
  if (!structure.exists()) {
    return options_.sparsity.nnz_at(step, updates, shapes, options_.distribution, options_.groups);
  }
  std::vector<Shape> units;
  for (const Shape& shape : shapes) units.push_back(structure.units(shape));
  std::vector<int64_t> counts =
      options_.sparsity.nnz_at(step, updates, units, options_.distribution, options_.groups);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (structure.is_nm()) counts[i] = nm_target(counts[i], units[i].numel());
    counts[i] *= structure.unit_size();
  }
  return counts;
}

// Units that whole cells make of a target: a cell is full or has its quota.
int64_t SparsityAlgorithm::nm_target(int64_t wanted, int64_t units) const {
  const Structure& s = options_.structure;
  const int64_t cells = units / s.m, least = cells * s.n;
  const auto slack = static_cast<int64_t>(kSparsityTolerance * static_cast<double>(units)) + 1;
  if (wanted + slack < least) {
    throw ConfigError(
        "pattern " + s.description() + " has a sparsity of " +
        Config(1.0 - s.full_density()).text() + " at most, the schedule asks for " +
        Config(1.0 - static_cast<double>(wanted) / static_cast<double>(units)).text());
  }
  const int64_t pruned = std::min((units - wanted + s.m - s.n - 1) / (s.m - s.n), cells);
  return units - pruned * (s.m - s.n);
}

}  // namespace lacuna
