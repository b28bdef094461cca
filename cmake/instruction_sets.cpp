// Prints the instruction sets of this architecture, by the names of LACUNA_INSTRUCTION_SET, best
// first and with semicolons between; "lacks " stands before those that this machine cannot run.
// CMake runs it to know which of them tests run under, and for which LACUNA_KERNELS=machine
// compiles.
#include <hwy/targets.h>

#include <cstdint>
#include <cstdio>

#include "../framework/kernels/avx_vnni.hpp"

int main() {
  const auto print = [](const char* name, int64_t targets, bool also = true) {
    const bool is_there = also && (hwy::SupportedTargets() & targets) != 0;
    std::printf("%s%s;", is_there ? "" : "lacks ", name);
  };
#if HWY_ARCH_X86
  print("avx512", HWY_AVX3_DL | HWY_AVX3);
  print("avx-vnni", HWY_AVX2, lacuna::has_avx_vnni());
  print("avx2", HWY_AVX2);
  print("sse4", HWY_SSE4);
#elif HWY_ARCH_ARM
  print("neon", HWY_NEON);
#endif
  std::printf("baseline;reference");
  return 0;
}
