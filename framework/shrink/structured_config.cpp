// Structured, from a configuration.
#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/shrink/structured.hpp"
#include "lacuna/sparsity/options/layout_option.h"

namespace lacuna {
namespace {

// Keys of other algorithms that would have no effect, and why.
void refuse_other_keys(const Config& entry) {
  const auto refuse = [&](const char* key, const char* why) {
    if (const Config given = entry.peek(key); !given.is_null()) {
      given.error(std::string("structured takes no `") + key + "`: " + why);
    }
  };
  refuse("pattern", "it masks whole units, and the rest of a weight is dense");
  refuse("distribution", "`shares` sets how groups of units share the sparsity");
  refuse("init_method", "it starts with all units");
  refuse("drop_fraction", "the sparsity schedule sets what is masked");
  if (const Config filter = entry.peek("param_filter"); filter.text() != "default") {
    refuse("param_filter",
           "a unit is masked in all weights that have it; choose layers by `layers`");
  }
  for (const char* key : {"balance_in_groups", "balance_out_groups"}) {
    refuse(key, "whole units compete, not weights");
  }
}

// {flops: 0.5}, which the sparsity must end with.
void read_to(const Config& entry, Structured::Options& options) {
  const Config to = entry.get("to");
  if (to.is_null()) return;
  if (to.is_map() && !to.peek("time").is_null()) {
    to.get("time").error(
        "training cannot target a time, which varies between runs; give {flops: F} or {parameters: "
        "F}, or `lacuna shrink RUN --to time=F` afterwards");
  }
  const auto [budget, left] = read_shrink_target(to);
  options.budget = budget;
  if (!entry.has("sparsity")) {
    throw ConfigError("`to` needs a `sparsity` schedule, which ends at the removed part");
  }
  const Config sparsity = entry.get("sparsity");
  const Config final = sparsity.is_map() ? sparsity.peek("final") : sparsity;
  if (final.is_number() && std::abs(final.as<double>() - (1.0 - left)) < 1e-6) return;
  to.error(fmt::format(
      "`sparsity` ends at {}, and {} of {:g} leaves {:g} to be removed; give one of them",
      final.is_number() ? final.text() : "another value", to_string(budget), left, 1.0 - left));
}

}  // namespace

bool Structured::calibrates(const Config& entry) {
  const Config criterion = entry.peek("criterion");
  return criterion.is_scalar() && criterion.text() == to_string(ShrinkMethod::Error);
}

std::unique_ptr<SparsityAlgorithm> Structured::from_config(const Config& entry, uint64_t seed) {
  refuse_other_keys(entry);
  Options options;
  options.common.seed = seed;
  options.common.layout = LayoutOption::from_config(entry);
  options.common.update = UpdateSchedule::from_config(entry.get("update"));
  options.common.param_filter = ParameterFilter(
      [](const std::string&, const Parameter& parameter) { return can_mask(parameter); });
  options.units.method = read_shrink_method(entry, "criterion");
  read_unit_choice(entry, options.units);
  if (options.units.method == ShrinkMethod::Error) {
    options.units.calibration = CalibrationOptions::from_config(entry.get("calibration"));
  } else if (entry.has("calibration")) {
    entry.get("calibration").error("only criterion error uses calibration examples; leave it out");
  }
  if (options.units.method == ShrinkMethod::Dead) {
    for (const char* key : {"sparsity", "to", "round_to"}) {
      if (!entry.has(key)) continue;
      entry.get(key).error("criterion dead masks all dead units and no others; leave it out");
    }
    return std::make_unique<Structured>(std::move(options));
  }
  read_to(entry, options);
  if (!entry.has("sparsity")) {
    entry.require_all_read();
    entry.error(
        "structured needs `sparsity`, the part of the units to remove, or `to: {flops: F}`");
  }
  // Runs that began without the key keep any count; new ones are given `auto`.
  if (const Config round_to = entry.get("round_to"); !round_to.is_null()) {
    options.units.round_to = Rounding::from_config(round_to);
  } else {
    entry.get("round_to", int64_t{1});
  }
  options.common.sparsity = SparsityTarget(Schedule::from_config(entry.at("sparsity")));
  return std::make_unique<Structured>(std::move(options));
}

}  // namespace lacuna
