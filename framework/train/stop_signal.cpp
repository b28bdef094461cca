#include "lacuna/framework/train/stop_signal.h"

#include <csignal>

namespace lacuna {
namespace {

volatile std::sig_atomic_t received_signal = 0;

extern "C" void note_signal(int signal) {
  received_signal = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  std::signal(SIGINT, note_signal);
  std::signal(SIGTERM, note_signal);
}

StopSignal::~StopSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int StopSignal::received() { return received_signal; }

}  // namespace lacuna
