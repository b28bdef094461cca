#include "lacuna/framework/program/program.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/job/job.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/framework/program/command_help.hpp"
#include "lacuna/framework/program/command_options.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/process_options.hpp"
#include "lacuna/framework/train/builtins.h"

namespace lacuna {
namespace {

int run_action(CLI::App& app, const Action& action, int argc, char** argv) {
  try {
    register_builtins();
    require_command(app, argc, argv);
    app.parse(argc, argv);
    require_one_process(app);
    active_instruction_set();  // reports a wrong one now, before a layer needs it
    warn_about_missing_kernels();
    most_dense_blocks();
    first_level_bytes();
    const int code = action();
    // A run's results are in its folder; printing is all that the other commands do.
    std::fflush(stdout);
    if (std::ferror(stdout) == 0 || app.got_subcommand("train")) return code;
    return fail("cannot write to the standard output", kRunError);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return fail(usage_error_of(app, error), kUsageError);
    app.exit(error);  // --help and --version
    return kDone;
  } catch (const std::exception&) {
    return fail_by(std::current_exception());
  }
}

}  // namespace

int run_program(int argc, char** argv) try {
  take_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report, as a full disk
  log_to_console(LogLevel::Warning);
  announce_measurements(log_info);
  CLI::App app{"lacuna: trains sparse neural networks"};
  app.set_version_flag("--version", std::string("lacuna ") + kVersion);
  app.require_subcommand(1);
  Action action;
  add_commands(app, action);
  add_help_commands(app, action);
  const int code = run_action(app, action, argc, argv);
  leave_job();
  stop_logging();
  return code;
} catch (const std::bad_alloc&) {  // outside of the command
  std::fputs("error: out of memory\n", stderr);
  return kRunError;
}

}  // namespace lacuna
