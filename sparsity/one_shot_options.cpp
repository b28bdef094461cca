// The options of one-shot pruning, from a configuration.
#include <optional>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/sparsity/one_shot_pruning.h"

namespace lacuna {
namespace {

// What would have no effect. Not asked for, so that no message names it as a known key.
void refuse_init_method(const Config& entry, OneShotMethod method) {
  const Config given = entry.peek("init_method");
  if (given.is_null()) return;
  given.error(std::string(to_string(method)) +
              " takes no `init_method`: it prunes the weights that there are");
}

OneShotGranularity read_granularity(const Config& entry, const PatternShape& pattern,
                                    OneShotGranularity fallback) {
  if (pattern.is_structured()) {
    if (entry.has("granularity")) {
      entry.get("granularity").error("a pattern says what competes; leave `granularity` out");
    }
    return fallback;
  }
  const auto name = entry.get<std::string>("granularity", to_string(fallback));
  if (name == "layer") return OneShotGranularity::Layer;
  if (name == "row") return OneShotGranularity::Row;
  entry.get("granularity").fail("'layer' or 'row'");
}

double read_damping(const Config& entry, const char* key, double fallback) {
  return require_range(entry, key, entry.get<double>(key, fallback), 0.0, 1e6);
}

// A number, or "auto".
double read_automatic_damping(const Config& entry, const char* key, double fallback) {
  constexpr double kAutomatic = OneShotOptions::kAutomaticDamping;
  const Config given = entry.get(key);
  if (given.is_null() && fallback == kAutomatic) {
    entry.get<std::string>(key, "auto");  // for the resolved configuration
    return kAutomatic;
  }
  if (given.is_null() || given.is_number()) return read_damping(entry, key, fallback);
  if (!given.is_scalar() || given.text() != "auto") given.fail("a number from 0, or auto");
  return kAutomatic;
}

// In the place of a sparsity.
std::optional<CostBudget> read_budget(const Config& entry, const Distribution& distribution) {
  const Config to = entry.get("to");
  if (to.is_null()) return std::nullopt;
  for (const char* key : {"sparsity", "schedule", "density", "fan_in"}) {
    if (!entry.peek(key).is_null()) {
      to.error("`" + std::string(key) + "` and `to` are both given; give one of them");
    }
  }
  if (distribution.kind != Distribution::Kind::Measured) {
    to.error("a budget is for distribution: measured alone");
  }
  return CostBudget::from_config(to);
}

}  // namespace

OneShotPruningOptions OneShotPruningOptions::from_config(const Config& entry, OneShotMethod method,
                                                         uint64_t seed) {
  refuse_init_method(entry, method);
  OneShotPruningOptions options{
      .common = SparsityOptions::from_config(entry, seed, FirstMask::Present),
      .pruning = OneShotOptions::defaults(method)};
  OneShotOptions& p = options.pruning;
  p.granularity = read_granularity(entry, options.common.pattern, p.granularity);
  if (method == OneShotMethod::SparseGpt || method == OneShotMethod::Admm) {
    p.damping = read_automatic_damping(entry, "damping", p.damping);
  }
  if (method == OneShotMethod::SparseGpt) {
    p.block = require_at_least(entry, "block", entry.get<int64_t>("block", p.block), 1);
  }
  if (method == OneShotMethod::Admm) {
    const int64_t rounds =
        require_at_least(entry, "rounds", entry.get<int64_t>("rounds", p.rounds), 1);
    if (rounds > 100'000) entry.get("rounds").fail("at most 100000 rounds");
    p.rounds = static_cast<int>(rounds);
    p.gradual_rounds = p.rounds * 3 / 4;  // 15 of 20, as its authors have it
  }
  p.least_squares = entry.get<bool>("least_squares", false);
  if (p.least_squares) {
    p.least_squares_damping = read_damping(entry, "least_squares_damping", p.least_squares_damping);
  }
  options.calibration = CalibrationOptions::from_config(entry.get("calibration"));
  options.to = read_budget(entry, options.common.distribution);
  return options;
}

}  // namespace lacuna
