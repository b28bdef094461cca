// StopSignal: Ctrl-C, SIGTERM and the end of the terminal ask for a stop between two steps.
#pragma once

namespace lacuna {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP is noted and the process goes on; a second
/// SIGINT or SIGTERM ends it at once, as it would have without this, but no second SIGHUP does: a
/// terminal that goes away sends several. SIGHUP stays ignored where it was (nohup). Afterwards the
/// handlers are those of before, but SIGHUP stays ignored where one has come. Under a launcher of
/// MPI programs SIGUSR1 counts as SIGTERM. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal's number, or 0 when none has come.
  static int received();

 private:
  using Handler = void (*)(int);
  Handler interrupt_before_;
  Handler terminate_before_;
  Handler hang_up_before_;
  Handler user_before_ = nullptr;
};

}  // namespace lacuna
