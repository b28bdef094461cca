// GivenConfig: a configuration as a user gives it, by a file or as a tree.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Receives lines for a person: what was found, chosen or left out. Null: they are dropped.
using Tell = std::function<void(const std::string& line)>;

/// Where the configuration of an action comes from.
struct GivenConfig {
  Config tree = {};       ///< used if `path` is empty; null: nothing is given
  std::string path = {};  ///< a YAML file; its relative paths may lead from its folder
  /// "key=value", with dotted keys and YAML values, as `lacuna --set` takes them.
  std::vector<std::string> overrides = {};

  bool is_empty() const { return path.empty() && tree.is_null(); }
};

}  // namespace lacuna
