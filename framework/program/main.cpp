// The lacuna program.
#include <hwy/nanobenchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "lacuna/framework/program/program.h"

// Highway's library measures the processor's clock when it is loaded, for benchmarks that nothing
// here runs: 3.6 ms, a fifth of the time that a command takes to start. It calls this instead.
uint64_t hwy::platform::TimerResolution() { return 1; }

namespace {

// Threads that wait for the others spin first, by default for milliseconds: where other programs
// want the cores too, the waiting thread takes its core from the one that is waited for. A spin of
// some 0.1 ms loses nothing on a quiet machine and little on a busy one. An epoch of
// mnist_mlp_static90.yaml on two threads and two cores, with GCC's OpenMP, alone and next to two
// other busy processes: spin count 300000 (its default) 0.50 s and 4–31 s, 2000 0.49 s and 2.8 s,
// 1000 0.55 s and 2.2 s, none 0.92 s and 1.2 s.
//
// The runtime reads the count when it is loaded, before main: so the program starts over with it.
void limit_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "2000", 0) == 0) execv("/proc/self/exe", argv);
  // Still here, so it could not be started over (no /proc): it runs all the same.
}

// Raises a small limit of the stack as far as may be, for this thread and for those that OpenMP
// makes after the program was started over. Layers nest by recursion, and the libraries below take
// some tens of kilobytes at once.
bool make_room_on_stack() {
  constexpr rlim_t kWanted = rlim_t{8} << 20, kLeast = rlim_t{256} << 10;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kWanted) return true;
  limit.rlim_cur = limit.rlim_max < kWanted ? limit.rlim_max : kWanted;
  setrlimit(RLIMIT_STACK, &limit);
  return limit.rlim_cur >= kLeast;
}

}  // namespace

int main(int argc, char** argv) {
  if (!make_room_on_stack()) {
    std::fputs("error: the limit of the stack (ulimit -s) is below 256 kB, which is too small\n",
               stderr);
    return 1;
  }
  limit_spinning(argv);
  return lacuna::run_program(argc, argv);
}
