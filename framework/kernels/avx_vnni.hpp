// Whether the processor has AVX-VNNI, which neither Highway's targets nor GCC's
// __builtin_cpu_supports distinguish.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lacuna {

/// Whether the processor multiplies bytes in vectors of 32 bytes (VEX-encoded vpdpbusd).
inline bool has_avx_vnni() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
#else
  return false;
#endif
}

}  // namespace lacuna
