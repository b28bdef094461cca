// Completions for shells.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/program/command_line/program_help.hpp"

namespace lacuna {

/// "bash", "zsh" and "fish".
const std::vector<std::string>& completed_shells();

/// A script that completes commands, options, keys of --set with their values, and files. *Errors:*
/// ConfigError when `shell` is not one of `completed_shells()`.
std::string completion_script(const std::string& shell, const ProgramHelp& program);

}  // namespace lacuna
