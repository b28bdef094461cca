// Built without the fuzzer's instrumentation, which makes symbols of these names itself in each
// file.
#include "lacuna/fuzz/counters.h"

extern "C" uint8_t __start___sancov_cntrs[] __attribute__((weak, visibility("hidden")));
extern "C" uint8_t __stop___sancov_cntrs[] __attribute__((weak, visibility("hidden")));

namespace lacuna::fuzz {

std::span<uint8_t> counters() {
  if (__start___sancov_cntrs == nullptr) return {};
  return {__start___sancov_cntrs, __stop___sancov_cntrs};
}

}  // namespace lacuna::fuzz
