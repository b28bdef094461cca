// The commands of the program and their options.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace lacuna {

/// What a command does; returns an exit code or throws.
using Action = std::function<int()>;

/// Adds all commands that do something with runs. The one that is parsed sets `action`.
void add_commands(CLI::App& app, Action& action);

}  // namespace lacuna
