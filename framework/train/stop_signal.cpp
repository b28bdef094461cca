#include "lacuna/framework/train/stop_signal.hpp"

#include <csignal>

#include "lacuna/framework/distributed/communicator.h"

namespace lacuna {
namespace {

volatile std::sig_atomic_t received_signal = 0;

extern "C" void note_signal(int signal) {
  received_signal = signal == SIGUSR1 ? SIGTERM : signal;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_IGN);
}

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  interrupt_before_ = std::signal(SIGINT, note_signal);
  terminate_before_ = std::signal(SIGTERM, note_signal);
  hang_up_before_ = std::signal(SIGHUP, note_signal);
  if (hang_up_before_ == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  // mpirun hands this one on to its processes, and gives them time.
  if (is_launched()) user_before_ = std::signal(SIGUSR1, note_signal);
}

StopSignal::~StopSignal() {
  std::signal(SIGINT, interrupt_before_);
  std::signal(SIGTERM, terminate_before_);
  if (received_signal != SIGHUP) std::signal(SIGHUP, hang_up_before_);  // more may be on their way
  if (is_launched()) std::signal(SIGUSR1, user_before_);
}

int StopSignal::received() { return received_signal; }

}  // namespace lacuna
