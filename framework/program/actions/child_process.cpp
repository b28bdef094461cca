#include "lacuna/framework/program/actions/child_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {

ChildProcess::ChildProcess(const std::vector<std::string>& program,
                           const std::vector<std::string>& arguments,
                           const std::string& output_path) {
  require_plain_file(output_path);
  const int output = ::open(output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (output < 0) {
    throw StateError("cannot write '" + output_path + "': " + std::strerror(errno));
  }
  std::vector<char*> argv;
  if (program.empty()) argv.push_back(const_cast<char*>("lacuna"));
  for (const auto* list : {&program, &arguments}) {
    for (const std::string& argument : *list) argv.push_back(const_cast<char*>(argument.c_str()));
  }
  const char* file = program.empty() ? "/proc/self/exe" : program.front().c_str();
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {  // only calls that are safe between fork and exec
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);  // it has died already
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
        ::dup2(output, STDERR_FILENO) < 0) {
      ::_exit(126);
    }
    ::execv(file, argv.data());
    ::_exit(127);
  }
  const int error = errno;
  ::close(output);
  if (process_ < 0)
    throw StateError(std::string("cannot start a process: ") + std::strerror(error));
}

std::optional<int> ChildProcess::ended() {
  if (code_) return code_;
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) != process_) return std::nullopt;
  code_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  return code_;
}

void ChildProcess::signal(int number) const {
  if (!code_) ::kill(process_, number);
}

}  // namespace lacuna
