// Running the lacuna program as a process of its own.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "paths.h"
#include "temporary_folder.h"

namespace lacuna {

/// What a process left: its exit code (minus the signal's number when one killed it) and output.
struct Ended {
  int code = 0;
  std::string out, err;
};

/// How it is started.
struct ProcessOptions {
  std::string program = kProgram;
  std::string fault = {};               ///< LACUNA_FAULT, see docs/reference/checkpoint.md
  std::string folder = {};              ///< to run in; empty: that of this process
  int64_t max_file_bytes = 0;           ///< a stand-in for a full disk; 0: no limit
  std::string standard_out = {};        ///< a file for the output; empty: it is captured
  std::string standard_in = {};         ///< a file for the input; empty: that of this process
  int64_t max_address_bytes = 0;        ///< a stand-in for a small machine; 0: no limit
  std::function<void()> in_child = {};  ///< done last, in the child
  std::function<void(pid_t child)> meanwhile = {};  ///< done while it runs
};

namespace internal {

// In the child; does not return.
[[noreturn]] inline void become(const std::vector<std::string>& arguments,
                                const ProcessOptions& options, const std::string& out,
                                const std::string& err) {
  const auto redirect = [](const std::string& path, int descriptor) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  };
  redirect(out, STDOUT_FILENO);
  redirect(err, STDERR_FILENO);
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(126);
  if (!options.fault.empty()) ::setenv("LACUNA_FAULT", options.fault.c_str(), 1);
  if (options.max_file_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(options.max_file_bytes);
    const rlimit both{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &both);
  }
  if (!options.standard_in.empty()) {
    const int file = ::open(options.standard_in.c_str(), O_RDONLY);
    if (file < 0 || ::dup2(file, STDIN_FILENO) < 0) ::_exit(126);
  }
  if (options.max_address_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(options.max_address_bytes);
    const rlimit both{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &both);
  }
  if (options.in_child) options.in_child();
  std::vector<char*> argv{const_cast<char*>("lacuna")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(options.program.c_str(), argv.data());
  ::_exit(127);
}

}  // namespace internal

/// Runs the program to its end.
inline Ended run_lacuna(const std::vector<std::string>& arguments,
                        const ProcessOptions& options = {}) {
  const TemporaryFolder outputs;
  const std::string out = options.standard_out.empty() ? outputs / "out" : options.standard_out;
  const pid_t child = ::fork();
  if (child == 0) internal::become(arguments, options, out, outputs / "err");
  if (options.meanwhile) options.meanwhile(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
          .out = options.standard_out.empty() ? read_text(out) : "",
          .err = read_text(outputs / "err")};
}

}  // namespace lacuna
