// The `lacuna` program as a function, for users' executables that add their own algorithms.
#pragma once

namespace lacuna {

/// Runs a command line of the program (docs/reference/commands.md). Returns the exit code: 0 done,
/// 1 an error of the run, 2 wrong usage or configuration; 129 after SIGHUP, 130 after SIGINT and
/// 143 after SIGTERM. Throws nothing; messages go to the standard error output.
int run_program(int argc, char** argv);

}  // namespace lacuna
