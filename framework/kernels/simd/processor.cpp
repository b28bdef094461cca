#include "lacuna/framework/kernels/simd/processor.hpp"

#include <hwy/targets.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

struct Processor {
  int64_t first_level = 32 * 1024, second_level = 1024 * 1024;  // bytes of a core's caches
  bool is_intel_server = false;
};

// For sysconf, which returns 0 or −1 for unknown sizes.
int64_t known_or(int64_t bytes, int64_t otherwise) { return bytes > 0 ? bytes : otherwise; }

Processor of_this_machine() {
  Processor found;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  found.first_level = known_or(::sysconf(_SC_LEVEL1_DCACHE_SIZE), found.first_level);
#endif
#ifdef _SC_LEVEL2_CACHE_SIZE
  found.second_level = known_or(::sysconf(_SC_LEVEL2_CACHE_SIZE), found.second_level);
#endif
#if HWY_ARCH_X86 && defined(__GNUC__)
  // Intel's processors with AVX-512: server processors, except for some from before 2022.
  found.is_intel_server = __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f");
#endif
  return found;
}

Processor choose_processor() {
  const char* text = std::getenv("LACUNA_PROCESSOR");
  const std::string name = text == nullptr ? "" : text;
  if (name.empty()) return of_this_machine();
  if (name == "amd") return {};
  if (name == "intel") {
    return {.first_level = 48 * 1024, .second_level = 2048 * 1024, .is_intel_server = true};
  }
  const std::vector<std::string> known = {"amd", "intel"};
  throw ConfigError("LACUNA_PROCESSOR: unknown kind of processor '" + name + "'; " +
                    suggest_name(name, known));
}

const Processor& processor() {
  static const Processor chosen = choose_processor();
  return chosen;
}

}  // namespace

int64_t first_level_bytes() { return processor().first_level; }

bool writes_around_caches(int64_t bytes) {
  return processor().is_intel_server && bytes > processor().second_level;
}

#ifndef LACUNA_SPREADS_BY_LOADS
bool spreads_by_loads() { return processor().is_intel_server; }
#endif

}  // namespace lacuna
