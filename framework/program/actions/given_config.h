// GivenConfig: a configuration as a user gives it, in a file or as a tree.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Receives lines for the user: what was found, chosen or omitted. Null: they are dropped.
using ReportLine = std::function<void(const std::string& line)>;

/// The source of an action's configuration.
struct GivenConfig {
  Config tree = {};       ///< used if `path` is empty; null: nothing is given
  std::string path = {};  ///< a YAML file; its relative paths may lead from its folder
  /// "key=value", with dotted keys and YAML values, as for `lacuna --set`.
  std::vector<std::string> overrides = {};

  bool is_empty() const { return path.empty() && tree.is_null(); }
};

}  // namespace lacuna
