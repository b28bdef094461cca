#include "lacuna/sparsity/options/filter.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/options/cstorch_names.hpp"

namespace lacuna {
namespace {

// By the name itself, or by what it is called where the glob was written.
bool matches_glob(const std::string& glob, const std::string& name) {
  return glob_match(glob, name) || matches_cstorch_glob(glob, name);
}

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::ranges::any_of(globs, [&](const std::string& g) { return matches_glob(g, name); });
}

std::string why_left_out(const Parameter& parameter, const std::vector<std::string>& except) {
  const std::string reason = ParameterFilter::default_reason(parameter);
  return reason.empty() && matches_any(except, parameter.name()) ? "left out by `except`" : reason;
}

// Each parameter with the reason why the default filter has not chosen it.
std::string reasons(const std::vector<ParameterPtr>& parameters,
                    const std::vector<std::string>& except) {
  std::vector<std::string> lines;
  for (const ParameterPtr& p : parameters)
    lines.push_back(p->name() + " (" + why_left_out(*p, except) + ")");
  return join(lines, ", ") + "; a param_filter can name others";
}

}  // namespace

ParameterFilter::ParameterFilter()
    : predicate_([](const std::string&, const Parameter& p) { return default_reason(p).empty(); }),
      is_default_(true),
      description_("the default filter (weights of linear and convolution layers)") {}

ParameterFilter::ParameterFilter(std::vector<std::string> globs) : globs_(std::move(globs)) {
  for (const std::string& glob : globs_) {
    description_ += (description_.empty() ? "'" : ", '") + glob + "'";
  }
  predicate_ = [all = globs_](const std::string& name, const Parameter&) {
    return matches_any(all, name);
  };
}

ParameterFilter::ParameterFilter(Predicate predicate)
    : predicate_(std::move(predicate)), description_("a predicate") {}

ParameterFilter ParameterFilter::all_but(std::vector<std::string> globs) {
  ParameterFilter filter;
  filter.except_ = std::move(globs);
  filter.description_ = "the default filter without '" + join(filter.except_, "', '") + "'";
  filter.predicate_ = [except = filter.except_](const std::string& name, const Parameter& p) {
    return default_reason(p).empty() && !matches_any(except, name);
  };
  return filter;
}

ParameterFilter ParameterFilter::from_config(const Config& config) {
  if (config.is_null()) return {};
  if (config.is_scalar() && config.text() == "default") return {};
  const auto globs_of = [](const Config& given) {
    if (given.is_scalar()) return std::vector<std::string>{given.as<std::string>()};
    if (!given.is_list()) given.fail("a glob, a list of globs, or a map {except: GLOBS}");
    auto globs = given.as<std::vector<std::string>>();
    if (globs.empty()) given.fail("a glob or a list of at least one");
    return globs;
  };
  if (config.is_map()) return all_but(globs_of(config.at("except")));
  return ParameterFilter(globs_of(config));
}

std::string ParameterFilter::default_reason(const Parameter& parameter) {
  if (parameter.use != WeightUse::Linear && parameter.use != WeightUse::Convolution) {
    return "not the weight of a linear or convolution layer";
  }
  if (parameter.shape().rank() < 2) return "of shape " + parameter.shape().to_string();
  const std::string lower = to_lower(parameter.name());
  for (const char* excluded : {"embedding", "norm", "lm_head", "pe_helper"}) {
    if (lower.find(excluded) != std::string::npos) {
      return "its name contains '" + std::string(excluded) + "'";
    }
  }
  if (parameter.is_tied) return "another layer is tied to it";
  return parameter.requires_dense ? "it must stay dense" : "";
}

// Whether it may be sparse here. One that another layer uses too must be meant for certain.
bool ParameterFilter::admits(const Parameter& parameter) const {
  if (parameter.requires_dense) return false;
  return !parameter.is_tied || std::ranges::find(globs_, parameter.name()) != globs_.end();
}

bool ParameterFilter::matches(const Parameter& parameter) const {
  return parameter.trainable && admits(parameter) && predicate_(parameter.name(), parameter);
}

bool ParameterFilter::matches_but_for_freezing(const Parameter& parameter) const {
  return !parameter.trainable && admits(parameter) && predicate_(parameter.name(), parameter);
}

std::vector<ParameterPtr> ParameterFilter::select(
    const std::vector<ParameterPtr>& parameters) const {
  std::vector<std::string> names, described;
  for (const ParameterPtr& parameter : parameters) {
    names.push_back(parameter->name());
    described.push_back(names.back());
    if (!parameter->trainable) described.back() += " (frozen)";
    if (parameter->requires_dense) {
      described.back() += " (it must stay dense)";
    } else if (parameter->is_tied) {
      described.back() += " (another layer is tied to it: only its full name selects it)";
    }
  }
  for (const std::string& glob : is_default_ ? except_ : globs_) {
    if (std::ranges::none_of(names, [&](const std::string& n) { return matches_glob(glob, n); })) {
      const std::string advice = cstorch_advice(glob, names);
      if (!advice.empty()) {
        throw ConfigError("param_filter '" + glob + "' matches no parameter; " + advice);
      }
      const std::string nearest = nearest_name(glob, names);
      throw ConfigError("param_filter '" + glob + "' matches no parameter" +
                        (nearest.empty() ? "" : "; did you mean '" + nearest + "'?") +
                        " (parameters: " + join_foreign(described, ", ") + ")");
    }
  }
  std::vector<ParameterPtr> chosen;
  for (const ParameterPtr& parameter : parameters) {
    if (matches(*parameter)) chosen.push_back(parameter);
  }
  if (chosen.empty()) {
    throw ConfigError(description_ + " chooses no parameter that may be sparse; " +
                      "the model has: " +
                      (names.empty() ? "none"
                       : is_default_ ? reasons(parameters, except_)
                                     : join_foreign(described, ", ")));
  }
  return chosen;
}

}  // namespace lacuna
