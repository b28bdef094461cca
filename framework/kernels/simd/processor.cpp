#include "lacuna/framework/kernels/simd/processor.h"

#include <hwy/targets.h>
#include <unistd.h>

namespace lacuna {
namespace {

// Of sysconf, which says 0 or −1 where it does not know.
int64_t known_or(int64_t bytes, int64_t otherwise) { return bytes > 0 ? bytes : otherwise; }

// Intel's processors with AVX-512: those of servers, but for some of before 2022.
bool is_intel_server() {
#if HWY_ARCH_X86 && defined(__GNUC__)
  static const bool is_one = __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f");
  return is_one;
#else
  return false;
#endif
}

}  // namespace

int64_t first_level_bytes() {
  constexpr int64_t kUsual = 32 * 1024;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  static const int64_t bytes = known_or(::sysconf(_SC_LEVEL1_DCACHE_SIZE), kUsual);
  return bytes;
#else
  return kUsual;
#endif
}

bool writes_around_caches(int64_t bytes) {
  constexpr int64_t kUsual = 1024 * 1024;
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const int64_t second_level = known_or(::sysconf(_SC_LEVEL2_CACHE_SIZE), kUsual);
#else
  constexpr int64_t second_level = kUsual;
#endif
  return is_intel_server() && bytes > second_level;
}

bool spreads_by_loads() { return is_intel_server(); }

}  // namespace lacuna
