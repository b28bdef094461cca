// Reading HDF5 files thousands of times without a fork for each: probe_hdf5 forks the process,
// which takes 20 ms under AddressSanitizer.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "lacuna/fuzz/counters.h"
#include "lacuna/fuzz/input.h"

namespace lacuna::fuzz {

/// A child process that reads one input after the other, by the functions that the program reads
/// with, as what probe_hdf5 has found good; what it covered counts as the fuzzer's own. It stands
/// for the child of probe_hdf5, so it may crash, or be ended after 40 ms of computing. An input
/// that crashed it then goes the program's way, through probe_hdf5, in the fuzzer's process, which
/// must survive it; so do the first input, one of every `kEvery` of all, and one of every
/// `kEveryEndless` of those that took too long. Damaged files leave the HDF5 library in disorder,
/// so a child reads at most `kLife` inputs. Without the fuzzer every input goes the program's way
/// alone.
class ReadingServer {
 public:
  /// Reads the input; `is_trusted`: without probe_hdf5 (`trust_hdf5`).
  using Read = void (*)(std::string_view bytes, bool is_trusted);

  explicit ReadingServer(Read read) : read_(read) {
    if (counters().empty()) return;
    void* place = ::mmap(nullptr, kMost + counters().size(), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(place != MAP_FAILED, "there is no memory to share");
    shared_ = static_cast<uint8_t*>(place);
  }
  ReadingServer(const ReadingServer&) = delete;
  ReadingServer& operator=(const ReadingServer&) = delete;
  ~ReadingServer() { stop(); }

  void take(std::string_view bytes) {
    const bool is_chosen = all_++ % kEvery == 0;  // the first, too: what `read` keeps is made here
    if (is_chosen || shared_ == nullptr || bytes.size() > kMost) read_(bytes, false);
    if (shared_ == nullptr || bytes.size() > kMost) return;
    if (process_ > 0 && taken_ >= kLife) stop();
    if (process_ < 0) start();
    ++taken_;
    if (ask(bytes)) {
      // Instead of this process's own, which has handed the input over and no more.
      std::memcpy(counters().data(), shared_ + kMost, counters().size());
    } else {
      const bool is_endless = stop() == SIGPROF;
      const bool is_passed = is_endless && endless_++ % kEveryEndless != 0;
      if (!is_chosen && !is_passed) read_(bytes, false);
    }
  }

 private:
  static constexpr size_t kMost = size_t{1} << 20;
  static constexpr int kEvery = 64, kEveryEndless = 16, kLife = 2000;

  // Whether the child came to the end of the input.
  bool ask(std::string_view bytes) {
    std::memcpy(shared_, bytes.data(), bytes.size());
    const size_t size = bytes.size();
    char ended = 0;
    return ::send(socket_, &size, sizeof(size), MSG_NOSIGNAL) == ssize_t{sizeof(size)} &&
           ::recv(socket_, &ended, 1, 0) == 1;
  }

  void start() {
    std::array<int, 2> ends{-1, -1};
    require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0,
            "there is no socket");
    process_ = ::fork();
    require(process_ >= 0, "no process could be started");
    if (process_ == 0) {
      ::close(ends[0]);
      serve(ends[1]);
    }
    ::close(ends[1]);
    socket_ = ends[0];
    taken_ = 0;
  }

  // Returns the signal that ended the child, or 0.
  int stop() {
    if (process_ < 0) return 0;
    ::close(socket_);  // where it waits for an input, it ends
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

  [[noreturn]] void serve(int socket) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF, SIGALRM}) {
      std::signal(signal, SIG_DFL);
    }
    require(std::freopen("/dev/null", "w", stderr) != nullptr, "there is no /dev/null");
    size_t size = 0;
    while (::recv(socket, &size, sizeof(size), 0) == ssize_t{sizeof(size)}) {
      const itimerval most{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 40'000}};
      ::setitimer(ITIMER_PROF, &most, nullptr);
      ::alarm(60);
      std::memset(counters().data(), 0, counters().size());
      read_({reinterpret_cast<const char*>(shared_), size}, true);
      std::memcpy(shared_ + kMost, counters().data(), counters().size());
      const char ended = 'e';
      if (::send(socket, &ended, 1, MSG_NOSIGNAL) != 1) break;
    }
    ::_exit(0);
  }

  Read read_;
  uint8_t* shared_ = nullptr;  // the input, then the counters
  pid_t process_ = -1;
  int socket_ = -1, taken_ = 0, all_ = 0, endless_ = 0;
};

}  // namespace lacuna::fuzz
