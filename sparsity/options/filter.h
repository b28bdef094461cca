// ParameterFilter: which parameters an algorithm makes sparse.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Chooses parameters by their full dotted name.
class ParameterFilter {
 public:
  using Predicate = std::function<bool(const std::string& name, const Parameter& parameter)>;

  /// Rank above 1, and the lower-cased name contains none of embedding, norm, lm_head, pe_helper.
  ParameterFilter();
  /// Globs, `*` crossing dots. A parameter that matches any of them is chosen.
  ParameterFilter(std::vector<std::string> globs);
  ParameterFilter(const char* glob) : ParameterFilter(std::vector<std::string>{glob}) {}
  ParameterFilter(Predicate predicate);
  /// null → the default; text → a glob; a list → globs. *Errors:* ConfigError.
  static ParameterFilter from_config(const Config& config);

  /// The chosen ones, without those that require to be dense. *Errors:* ConfigError when a glob
  /// matches none of the parameters, or nothing is chosen: names the filter and the nearest or all
  /// names.
  std::vector<ParameterPtr> select(const std::vector<ParameterPtr>& parameters) const;
  bool matches(const Parameter& parameter) const;

  /// "'fc*.weight'", "the default filter": for messages.
  const std::string& description() const { return description_; }

 private:
  std::vector<std::string> globs_;
  Predicate predicate_;
  std::string description_;
};

}  // namespace lacuna
