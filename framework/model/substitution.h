// Substitution of arguments: `$name` and `$(expression)` in a tree of options.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// The arguments that are available, by name, and their owner (a template's name; empty outside any
/// template).
struct Scope {
  std::string owner;
  std::map<std::string, Config, std::less<>> arguments;
};

/// Whether a scalar here or below has a '$'. Marks nothing as read.
bool mentions_arguments(const Config& node);

/// The arguments that scalars here and below mention. Marks nothing as read.
std::set<std::string> mentioned_arguments(const Config& node);

/// A copy of the node in which every `$name` is the argument's value and every `$(…)` that of the
/// expression; if there is text around them, their text. `$$` is a '$'. The copy and all nodes in
/// it are unread. They have the positions of the nodes they were copied from (for a value, that of
/// the argument) and the key paths of `node`. *Errors:* ConfigError at the scalar, with the nearest
/// argument.
Config substitute(const Config& node, const Scope& scope);

}  // namespace lacuna
