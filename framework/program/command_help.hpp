// The command line as the parser has it: mistakes in our words, and `lacuna help`, `version` and
// `completion`, which are made of the options themselves.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace lacuna {

/// *Errors:* ConfigError where no command is given, or one that does not exist.
void require_command(const CLI::App& app, int argc, char** argv);

/// *Errors:* ConfigError where a launcher has started several processes for what is one's alone.
void require_one_process(const CLI::App& app);

/// What the parser found wrong.
std::string usage_error_of(const CLI::App& app, const CLI::ParseError& error);

/// Adds the commands, after all others. `app` is asked when one of them is carried out.
void add_help_commands(CLI::App& app, std::function<int()>& action);

}  // namespace lacuna
