#include "lacuna/sparsity/options/filter.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/options/cstorch_names.hpp"

namespace lacuna {
namespace {

// Why the default filter leaves a parameter out; empty when it does not.
std::string why_not(const std::string& name, const Parameter& parameter) {
  if (parameter.use != WeightUse::Linear && parameter.use != WeightUse::Convolution) {
    return "no weight of a linear or convolution layer";
  }
  if (parameter.shape().rank() < 2) return "of shape " + parameter.shape().to_string();
  const std::string lower = to_lower(name);
  for (const char* excluded : {"embedding", "norm", "lm_head", "pe_helper"}) {
    if (lower.find(excluded) != std::string::npos) {
      return "its name contains '" + std::string(excluded) + "'";
    }
  }
  return parameter.requires_dense ? "it requires to be dense" : "";
}

// By the name itself, or by what it is called where the glob was written.
bool matches_glob(const std::string& glob, const std::string& name) {
  return glob_match(glob, name) || matches_cstorch_glob(glob, name);
}

// Each parameter with the reason why the default filter has not chosen it.
std::string reasons(const std::vector<ParameterPtr>& parameters) {
  std::vector<std::string> lines;
  for (const ParameterPtr& p : parameters)
    lines.push_back(p->name() + " (" + why_not(p->name(), *p) + ")");
  return join(lines, ", ") + "; a param_filter can name others";
}

}  // namespace

ParameterFilter::ParameterFilter()
    : predicate_(
          [](const std::string& name, const Parameter& p) { return why_not(name, p).empty(); }),
      is_default_(true),
      description_("the default filter (weights of linear and convolution layers)") {}

ParameterFilter::ParameterFilter(std::vector<std::string> globs) : globs_(std::move(globs)) {
  for (const std::string& glob : globs_) {
    description_ += (description_.empty() ? "'" : ", '") + glob + "'";
  }
  predicate_ = [all = globs_](const std::string& name, const Parameter&) {
    return std::ranges::any_of(all, [&](const std::string& g) { return matches_glob(g, name); });
  };
}

ParameterFilter::ParameterFilter(Predicate predicate)
    : predicate_(std::move(predicate)), description_("a predicate") {}

ParameterFilter ParameterFilter::from_config(const Config& config) {
  if (config.is_null()) return {};
  if (config.is_scalar()) return ParameterFilter({config.as<std::string>()});
  auto globs = config.as<std::vector<std::string>>();
  if (globs.empty()) config.fail("a glob or a list of at least one");
  return ParameterFilter(std::move(globs));
}

bool ParameterFilter::matches(const Parameter& parameter) const {
  return parameter.trainable && !parameter.requires_dense &&
         predicate_(parameter.name(), parameter);
}

bool ParameterFilter::matches_but_for_freezing(const Parameter& parameter) const {
  return !parameter.trainable && !parameter.requires_dense &&
         predicate_(parameter.name(), parameter);
}

std::vector<ParameterPtr> ParameterFilter::select(
    const std::vector<ParameterPtr>& parameters) const {
  std::vector<std::string> names, described;
  for (const ParameterPtr& parameter : parameters) {
    names.push_back(parameter->name());
    described.push_back(names.back());
    if (!parameter->trainable) described.back() += " (frozen)";
    if (parameter->requires_dense) {
      described.back() += " (another layer is tied to it: it stays dense)";
    }
  }
  for (const std::string& glob : globs_) {
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
                       : is_default_ ? reasons(parameters)
                                     : join_foreign(described, ", ")));
  }
  return chosen;
}

}  // namespace lacuna
