// compare_checkpoints A B: exit code 0 when two checkpoints hold the same state, bit for bit.
// For scripts/soak.sh. What may differ between two equal runs (times) is not part of the state.
#include <cstdio>
#include <exception>

#include "lacuna/framework/io/checkpoint.h"
#include "state_differences.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: compare_checkpoints A B\n", stderr);
    return 2;
  }
  try {
    const lacuna::Checkpoint a = lacuna::read_checkpoint(argv[1]);
    const lacuna::Checkpoint b = lacuna::read_checkpoint(argv[2]);
    const auto names = lacuna::differences(a.state, b.state);
    for (const std::string& name : names) std::printf("%s differs\n", name.c_str());
    if (a.step != b.step) std::puts("the steps differ");
    return names.empty() && a.step == b.step ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
