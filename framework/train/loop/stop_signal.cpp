#include "lacuna/framework/train/loop/stop_signal.hpp"

#include <unistd.h>

#include <algorithm>

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

void note(int signal, struct sigaction* before) {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, before);
}

// Room for the registers that the kernel saves, and for the handler.
size_t stack_size() {
  constexpr long kLeast = 64 * 1024;
  return static_cast<size_t>(std::max(kLeast, ::sysconf(_SC_SIGSTKSZ)));
}

}  // namespace

StopSignal::StopSignal() : stack_(std::make_unique<std::byte[]>(stack_size())) {
  received_signal = 0;
  stack_t stack = {};
  stack.ss_sp = stack_.get();
  stack.ss_size = stack_size();
  ::sigaltstack(&stack, &stack_before_);
  note(SIGINT, &interrupt_before_);
  note(SIGTERM, &terminate_before_);
  note(SIGHUP, &hang_up_before_);
  if (hang_up_before_.sa_handler == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  // mpirun hands this one on to its processes, and gives them time.
  if (is_launched()) note(SIGUSR1, &user_before_);
}

StopSignal::~StopSignal() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
  // More may be on their way where one has come.
  if (received_signal != SIGHUP) ::sigaction(SIGHUP, &hang_up_before_, nullptr);
  if (is_launched()) ::sigaction(SIGUSR1, &user_before_, nullptr);
  ::sigaltstack(&stack_before_, nullptr);
}

int StopSignal::received() { return received_signal; }

}  // namespace lacuna
