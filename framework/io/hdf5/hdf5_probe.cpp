#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <compare>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <set>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/hdf5/hdf5_internal.hpp"

namespace lacuna {
namespace {

// The child's messages: that it has come to the end, or a DataError's message after a kRefused.
constexpr char kEnded = 'e', kRefused = 'r';
constexpr size_t kMostWords = 4000;  // less than any pipe holds

// Fuzzing, which comes upon many files that never end, has less patience.
#if defined(LACUNA_PROBE_SECONDS)
constexpr double kLeastSeconds = LACUNA_PROBE_SECONDS;
#else
constexpr double kLeastSeconds = 3.0;
#endif

// A file in its present state, and the purpose for which it is good; empty: all purposes.
struct Found {
  dev_t device = 0;
  ino_t inode = 0;
  int64_t bytes = 0, time = 0;
  std::string purpose = {};
  auto operator<=>(const Found&) const = default;
};

std::optional<Found> identify(const std::string& path, const std::string& purpose) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  const int64_t time = int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
  return Found{facts.st_dev, facts.st_ino, facts.st_size, time, purpose};
}

class FoundFiles {
 public:
  void add(const Found& file) {
    const std::lock_guard lock(mutex_);
    if (files_.size() >= kMost) files_.clear();  // they are probed again, no more
    files_.insert(file);
  }
  bool has(Found file) const {
    const std::lock_guard lock(mutex_);
    if (files_.contains(file)) return true;
    file.purpose.clear();
    return files_.contains(file);
  }

 private:
  static constexpr size_t kMost = 4096;
  mutable std::mutex mutex_;
  std::set<Found> files_;
};

FoundFiles& found_files() {
  static FoundFiles files;
  return files;
}

void set_limit(int which, rlim_t value) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0) return;
  limit.rlim_cur = std::min({value, limit.rlim_cur, limit.rlim_max});
  ::setrlimit(which, &limit);
}

// Bytes of address space in use.
rlim_t own_space() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return RLIM_INFINITY;
  unsigned long pages = 0;
  const bool is_read = std::fscanf(file, "%lu", &pages) == 1;
  std::fclose(file);
  return is_read ? rlim_t{pages} * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) : RLIM_INFINITY;
}

// What becomes of a crash is the parent's matter: no handler of the program, a sanitizer's or a
// test's, may see it, and nothing is printed (glibc's words about a damaged heap).
void prepare_child(const Hdf5Probe& probe, int64_t bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF, SIGALRM}) {
    std::signal(signal, SIG_DFL);
  }
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing >= 0) {
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
  }
  set_limit(RLIMIT_CORE, 0);
  if (probe.has_time_limit) {
    const double seconds = probe_seconds(bytes);
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(seconds);
    timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
    ::setitimer(ITIMER_PROF, &timer, nullptr);
    ::alarm(static_cast<unsigned>(60.0 + 20.0 * seconds));  // should it wait for what never comes
  }
  const rlim_t space = own_space();
  const int64_t left = available_memory();
  if (space != RLIM_INFINITY && left < std::numeric_limits<int64_t>::max() / 2) {
    set_limit(RLIMIT_AS, space + static_cast<rlim_t>(left));
  }
  set_num_threads(1);
}

[[noreturn]] void run_child(const Hdf5Probe& probe, int64_t bytes,
                            const std::function<void()>& read, int result) {
  prepare_child(probe, bytes);
  std::string words(1, kEnded);
  try {
    read();
  } catch (const DataError& error) {
    words = kRefused + std::string(error.what()).substr(0, kMostWords);
  } catch (...) {  // the parent will see
  }
  while (::write(result, words.data(), words.size()) < 0 && errno == EINTR) {
  }
  ::_exit(0);  // without the library's own end, which goes wrong where a file was damaged
}

// A pipe's two ends.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) ends_ = {-1, -1};
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  bool is_open() const { return ends_[0] >= 0; }
  int in() const { return ends_[1]; }
  // Empty if the child died.
  std::string words() const {
    std::string words(kMostWords + 1, '\0');
    const ssize_t count = ::read(ends_[0], words.data(), words.size());
    words.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return words;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw DataError("'" + path + "' could not be read: " + why);
}

// The signal that ended the process, or 0. Where the program has its children's ends taken by
// others (SIGCHLD ignored, a handler), none is known.
int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return 0;
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

double probe_seconds(int64_t bytes) { return kLeastSeconds + 2e-6 * static_cast<double>(bytes); }

void trust_hdf5(const std::string& path) {
  if (const auto file = identify(path, "")) found_files().add(*file);
}

void probe_hdf5(const Hdf5Probe& probe, const std::function<void()>& read) {
  const std::optional<Found> file = identify(probe.path, probe.purpose);
  if (!file || found_files().has(*file)) return;  // opening it reports what is not a file
  const Pipe pipe;
  if (!pipe.is_open()) refuse_file(probe.path, std::string("no pipe: ") + std::strerror(errno));
  pid_t process = -1;
  {
    const hdf5::Session session;  // no other thread is within the library now
    process = ::fork();
    if (process == 0) {
      hdf5::renew_lock();
      run_child(probe, file->bytes, read, pipe.in());
    }
  }
  if (process < 0) {
    refuse_file(
        probe.path,
        std::string("it is first read in a separate process, which could not be started: ") +
            std::strerror(errno));
  }
  const int signal = wait_for(process);
  const std::string words = pipe.words();
  if (words.starts_with(kRefused)) throw DataError(words.substr(1));
  if (words.starts_with(kEnded)) {
    found_files().add(*file);
    return;
  }
  if (signal == SIGPROF || signal == SIGALRM) {
    refuse_file(probe.path, fmt::format("the HDF5 library did not finish reading it in {:.0f} s",
                                        probe_seconds(file->bytes)));
  }
  if (signal == SIGKILL) {
    refuse_file(probe.path,
                "the process that first read it was killed, perhaps because memory ran out");
  }
  refuse_file(probe.path, signal == 0
                              ? "the HDF5 library crashed on it"
                              : fmt::format("the HDF5 library crashed on it (signal {})", signal));
}

}  // namespace lacuna
