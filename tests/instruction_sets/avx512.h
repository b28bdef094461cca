// For kernels that exist for AVX-512 alone: their tests are made where this process runs on it, and
// nowhere else. CMake lists the instruction sets that a machine lacks (tests/CMakeLists.txt).
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace lacuna::test {

/// As `active_instruction_set() == "avx512"`, before main() alone. There that must not be asked: it
/// keeps the cap for the whole process, and death tests set one of their own. Later this must not
/// be: hwy::SupportedTargets() makes the kernels choose among all targets again, whatever the cap.
inline bool will_run_avx512() {
#if HWY_ARCH_X86
  const char* text = std::getenv("LACUNA_INSTRUCTION_SET");
  const std::string cap = text == nullptr ? "" : text;
  const bool has_it = (hwy::SupportedTargets() & (HWY_AVX3_DL | HWY_AVX3)) != 0;
  return has_it && (cap.empty() || cap == "avx512");
#else
  return false;
#endif
}

/// The values for INSTANTIATE_TEST_SUITE_P, none where this process does not run on AVX-512. The
/// suite needs GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST.
template <class T>
auto with_avx512(const std::vector<T>& values) {
  return testing::ValuesIn(will_run_avx512() ? values : std::vector<T>());
}

}  // namespace lacuna::test
