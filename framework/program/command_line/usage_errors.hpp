// What is wrong with a command line, in the words that the program has for other mistakes.
#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// An option of a command, or a positional argument, as a command line has it.
struct CommandOption {
  std::string name;   ///< "--out"; of a positional argument without dashes
  std::string value;  ///< placeholder of its value: FILE, or TEXT for any; empty: a flag
  std::string about;  ///< a sentence on it
  bool is_required = false;
  std::vector<std::string> given = {};  ///< its values

  bool is_positional() const { return !name.starts_with('-'); }
};

/// A command line as far as it was understood.
struct CommandUse {
  std::string command;
  std::vector<CommandOption> options;
  std::vector<std::string> unknown = {};  ///< arguments that no option accepts
};

/// The message of a mistake: which option, what it needs, the nearest name of one that does not
/// exist. `kind` is what CLI11 calls the error, as "RequiredError", and `parser_words` its
/// message, which names the option; for other kinds its message is returned. An option that does
/// not exist is reported first, whatever was found.
std::string usage_error(const CommandUse& use, const std::string& kind,
                        const std::string& parser_words);

}  // namespace lacuna
