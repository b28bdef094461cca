// Registry: names from a configuration → what makes the named things, each with a line of help.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

/// Factories of one kind of thing by name. `Made` is the factory's function type, or a struct of
/// such functions and of facts about the thing.
template <class Made>
class Registry {
 public:
  using Factory = std::conditional_t<std::is_function_v<Made>, std::function<Made>, Made>;
  struct Entry {
    std::string help;  ///< one line for `lacuna list`
    Factory make;
  };

  /// `kind` names the things in messages: "layer", "optimizer".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Adds a factory. Returns true, so that a user's executable can register at namespace scope:
  /// `const bool registered = algorithm_registry().add("mine", "…", make_mine);`
  /// *Errors:* StateError when the name is taken.
  bool add(std::string name, std::string help, Factory make) {
    const auto [place, inserted] =
        entries_.emplace(std::move(name), Entry{std::move(help), std::move(make)});
    if (!inserted) {
      throw StateError("there is already a " + kind_ + " named '" + place->first + "'");
    }
    return true;
  }

  /// The same for a struct, given only its first member.
  template <class First>
  requires(!std::is_convertible_v<First, Factory>) bool add(std::string name, std::string help,
                                                            First first) {
    return add(std::move(name), std::move(help), Factory{std::move(first)});
  }

  bool contains(std::string_view name) const { return entries_.find(name) != entries_.end(); }

  /// *Errors:* ConfigError at `where` (the node that holds the name) with the nearest name.
  const Entry& find(std::string_view name, const Config& where) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      where.error("unknown " + kind_ + " '" + std::string(name) + "'" +
                  (entries_.empty() ? "" : "; " + suggest_name(name, names())));
    }
    return found->second;
  }

  /// Like `find`, but "RigL" finds "rigl": where nothing has the name as written, case is ignored.
  const Entry& find_any_case(std::string_view name, const Config& where) const {
    const std::string lower = to_lower(name);
    return find(contains(name) || !contains(lower) ? name : lower, where);
  }

  /// All names in alphabetical order, and their entries.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  std::string kind_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace lacuna
