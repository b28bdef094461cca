// StopSignal: Ctrl-C, SIGTERM and the end of the terminal request a stop between two steps.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>

namespace lacuna {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP is noted and the process goes on; a second
/// SIGINT or SIGTERM ends it at once, as it would have without this, but no second SIGHUP does: a
/// terminal that goes away sends several. SIGHUP stays ignored where it was (nohup). Afterwards the
/// handlers are those of before, but SIGHUP stays ignored where one has come. Under a launcher of
/// MPI programs SIGUSR1 counts as SIGTERM. One at a time, and in the thread that a signal to the
/// process interrupts, which is the first one.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal's number, or 0 when none has come.
  static int received();

 private:
  // Kernels of dense products that are made as the program runs (oneDNN's) may use the stack
  // pointer as they like: what a handler put there would fall into the middle of the heap.
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_ = {};
  struct sigaction interrupt_before_ = {}, terminate_before_ = {}, hang_up_before_ = {},
                   user_before_ = {};
};

}  // namespace lacuna
