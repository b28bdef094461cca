#include "lacuna/framework/shrink/shrink_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

const std::vector<std::string> kBudgets = {"flops", "parameters", "time"};

}  // namespace

ShrinkMethod read_shrink_method(const Config& section, const char* key) {
  const auto name = section.get<std::string>(key, "magnitude");
  const std::vector<std::string>& methods = shrink_methods();
  const auto found = std::ranges::find(methods, name);
  if (found == methods.end()) section.at(key).fail(join(methods, ", "));
  return static_cast<ShrinkMethod>(found - methods.begin());
}

const std::vector<std::string>& shrink_methods() {
  static const std::vector<std::string> methods = {"magnitude", "saliency", "error", "dead"};
  return methods;
}

const char* to_string(ShrinkMethod method) {
  return shrink_methods()[static_cast<size_t>(method)].c_str();
}

const char* to_string(ShrinkBudget budget) { return kBudgets[static_cast<size_t>(budget)].c_str(); }

// {flops: 0.5}.
ShrinkTarget read_shrink_target(const Config& to) {
  const std::string form = "a map of one of flops, parameters and time, as in {flops: 0.5}";
  if (!to.is_map() || to.entries().size() != 1) to.fail(form);
  const auto [key, value] = to.entries().front();
  const auto found = std::ranges::find(kBudgets, key);
  if (found == kBudgets.end()) value.error("there is no budget '" + key + "'; give " + form);
  if (!value.is_number()) value.fail("a number above 0 and up to 1");
  const auto left = value.as<double>();
  if (!(left > 0.0 && left <= 1.0)) value.fail("a number above 0 and up to 1");
  return {static_cast<ShrinkBudget>(found - kBudgets.begin()), left};
}

void read_unit_choice(const Config& section, ShrinkOptions& options) {
  const auto shares = section.get<std::string>(
      "shares", options.method == ShrinkMethod::Magnitude ? "uniform" : "global");
  if (shares != "uniform" && shares != "global") section.at("shares").fail("uniform or global");
  options.shares = shares == "uniform" ? ShrinkShares::Uniform : ShrinkShares::Global;
  options.keep_at_least = section.get("keep_at_least", 0.1);
  if (!(options.keep_at_least > 0.0 && options.keep_at_least <= 1.0)) {
    section.at("keep_at_least").fail("a number above 0 and up to 1");
  }
  if (const Config layers = section.get("layers"); !layers.is_null()) {
    options.layers = layers.is_scalar() ? std::vector<std::string>{layers.as<std::string>()}
                                        : layers.as<std::vector<std::string>>();
    if (options.layers.empty()) layers.fail("at least one glob");
  }
}

Rounding Rounding::from_config(const Config& round_to) {
  if (round_to.is_scalar() && round_to.text() == "auto") return automatic();
  const std::string expected = "auto, or a positive integer";
  if (!round_to.is_number()) round_to.fail(expected);
  const auto multiple = round_to.as<int64_t>();
  if (multiple < 1) round_to.fail(expected);
  return {.multiple = multiple};
}

ShrinkOptions ShrinkOptions::from_config(const Config& section) {
  if (!section.is_map()) section.fail("a map with `method` and `to`");
  ShrinkOptions options;
  options.method = read_shrink_method(section, "method");
  const Config to = section.get("to");
  if (options.method == ShrinkMethod::Dead) {
    if (!to.is_null()) to.error("method dead removes all dead units and no others; leave it out");
    for (const char* key : {"shares", "keep_at_least", "round_to"}) {
      const Config given = section.get(key);
      if (!given.is_null()) given.error("method dead removes all that is dead; leave it out");
    }
  } else {
    if (to.is_null())
      section.error("`to` is missing: it sets the fraction that remains, as in {flops: 0.5}");
    const ShrinkTarget target = read_shrink_target(to);
    options.budget = target.budget;
    options.to = target.left;
  }
  read_unit_choice(section, options);
  if (options.method != ShrinkMethod::Dead) {
    const Config given = section.get("round_to");
    if (given.is_null()) section.get<std::string>("round_to", "auto");  // recorded
    options.round_to = given.is_null() ? Rounding::automatic() : Rounding::from_config(given);
  }
  if (options.method == ShrinkMethod::Error) {
    options.least_squares = section.get("least_squares", true);
  }
  options.calibration = CalibrationOptions::from_config(section.get("calibration"));
  section.require_all_read();
  return options;
}

}  // namespace lacuna
