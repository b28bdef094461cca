// What the program's commands and their options are, for texts that are made of them: completions
// of shells, the manual page.
#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// A key of configurations, as docs/reference/config.md documents it.
struct KeyHelp {
  std::string path;                       ///< dotted: "train.epochs"
  std::string about;                      ///< in words, without markup
  std::vector<std::string> choices = {};  ///< values that it may have, where they are few
};

/// An option of a command, or a positional argument.
struct OptionHelp {
  std::vector<std::string> names;  ///< "--out", "--run-dir"; of an argument one without dashes
  std::string value;               ///< placeholder of its value, as FILE; empty: a flag
  std::string about;
  bool is_required = false;
  bool is_repeated = false;
  std::vector<std::string> choices = {};  ///< values that it may have, where they are few

  bool is_positional() const { return !names.front().starts_with('-'); }
  /// Whether its value is a path=value of the configuration.
  bool takes_key() const { return value.starts_with("PATH=VALUE"); }
};

struct CommandHelp {
  std::string name;
  std::string about;
  std::vector<OptionHelp> options;
};

struct ProgramHelp {
  std::string version;
  std::vector<CommandHelp> commands;
  std::vector<KeyHelp> keys;
};

}  // namespace lacuna
