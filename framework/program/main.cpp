// The lacuna program.
#include <unistd.h>

#include <cstdlib>

#include "lacuna/framework/program/program.h"

namespace {

// Threads that wait for the others spin first, by default for milliseconds: where other programs
// want the cores too, the waiting thread takes its core from the one that is waited for. A spin of
// some 0.1 ms loses nothing on a quiet machine and little on a busy one. An epoch of
// mnist_mlp_static90.yaml on two threads and two cores, with GCC's OpenMP, alone and beside two
// other busy processes: spin count 300000 (its default) 0.50 s and 4–31 s, 2000 0.49 s and 2.8 s,
// 1000 0.55 s and 2.2 s, none 0.92 s and 1.2 s.
//
// The runtime reads the count when it is loaded, before main: so the program starts over with it.
void limit_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "2000", 0) == 0) execv("/proc/self/exe", argv);
  // Still here, so it could not be started over (no /proc): it runs all the same.
}

}  // namespace

int main(int argc, char** argv) {
  limit_spinning(argv);
  return lacuna::run_program(argc, argv);
}
