// ChildProcess: the program started once more, with other arguments.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lacuna {

/// The program in a process group of its own, so that a terminal's Ctrl-C reaches it through its
/// parent alone; it is asked to end (SIGTERM) when its parent dies. Output goes to a file.
class ChildProcess {
 public:
  /// `program`: the file and first arguments of the program; empty: this process's own file.
  /// *Errors:* StateError when no process can be started, or the file not be written.
  ChildProcess(const std::vector<std::string>& program, const std::vector<std::string>& arguments,
               const std::string& output_path);

  /// How it ended: its exit code, or minus a signal's number; empty while it runs.
  std::optional<int> ended();
  /// Sends a signal if it still runs.
  void signal(int number) const;

 private:
  pid_t process_ = -1;
  std::optional<int> code_ = {};
};

}  // namespace lacuna
