// StopSignal: Ctrl-C and SIGTERM ask for a stop between two steps.
#pragma once

namespace lacuna {

/// While it lives, the first SIGINT or SIGTERM is noted and the process goes on; a second one ends
/// it at once, as it would have without this. Afterwards the handlers are those of before. One at a
/// time.
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
};

}  // namespace lacuna
