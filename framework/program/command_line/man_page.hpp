// The manual page, in roff.
#pragma once

#include <string>

#include "lacuna/framework/program/command_line/program_help.hpp"

namespace lacuna {

/// lacuna(1), for `man`: every command with its options, exit codes and files.
std::string man_page(const ProgramHelp& program);

}  // namespace lacuna
