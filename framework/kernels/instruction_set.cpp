#include "lacuna/framework/kernels/instruction_set.hpp"

#include <hwy/targets.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/avx_vnni.hpp"
#include "lacuna/framework/kernels/compiled_instruction_sets.hpp"
#include "lacuna/framework/kernels/float_instruction_set.hpp"

#if LACUNA_HAVE_DNNL
#include <dnnl.h>
#endif

namespace lacuna {
namespace {

// The set of a build for one instruction set (LACUNA_KERNELS=machine).
#ifdef LACUNA_ONE_INSTRUCTION_SET
constexpr std::string_view kOnlySet = LACUNA_ONE_INSTRUCTION_SET;
#else
constexpr std::string_view kOnlySet;
#endif

struct Level {
  std::string name;
  int64_t targets;                // Highway's targets that belong to this level
  bool multiplies_bytes = false;  // needs AVX-VNNI as well
};

// Best first; a cap disables everything above it.
const std::vector<Level>& levels() {
  static const std::vector<Level> all = {
#if HWY_ARCH_X86
    {"avx512", HWY_AVX3_DL | HWY_AVX3},
    {"avx-vnni", HWY_AVX2, true},
    {"avx2", HWY_AVX2},
    {"sse4", HWY_SSE4},
#elif HWY_ARCH_ARM
    {"neon", HWY_NEON},
#endif
    {"baseline", 0},
    {"reference", 0},
  };
  return all;
}

// Whether kernels of a level are compiled and the processor has it.
bool is_there(const Level& level) {
  if (!kOnlySet.empty() && level.name != kOnlySet) return false;
  if (level.multiplies_bytes && !has_avx_vnni()) return false;
  if (level.targets == 0) return true;
  return (hwy::SupportedTargets() & HWY_TARGETS & level.targets) != 0;
}

[[noreturn]] void fail_without_kernels(const std::string& cap) {
  const std::string only(kOnlySet);
  const std::string advice =
      "this build only has kernels for " + only + "; build with -DLACUNA_KERNELS=all";
  if (cap.empty()) throw Error("the processor lacks " + only + ", and " + advice);
  throw ConfigError("LACUNA_INSTRUCTION_SET=" + cap + ": " + advice);
}

void cap_dense_provider(const std::string& level) {
#if LACUNA_HAVE_DNNL && HWY_ARCH_X86
  if (level == "avx-vnni") {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2_vnni);
  } else if (level == "avx2") {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  } else if (level != "avx512") {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
  }
#else
  (void)level;
#endif
}

std::string choose_instruction_set() {
  const char* requested = std::getenv("LACUNA_INSTRUCTION_SET");
  const std::string cap = requested == nullptr ? "" : requested;
  std::vector<std::string> names;
  for (const Level& level : levels()) names.push_back(level.name);
  bool below_cap = cap.empty();
  int64_t disabled = 0, kept = 0;
  std::string chosen;
  for (const Level& level : levels()) {
    below_cap |= level.name == cap;
    if (!below_cap) {
      disabled |= level.targets;
    } else if (chosen.empty() && is_there(level)) {
      chosen = level.name;
      kept = level.targets;
    }
  }
  if (!below_cap) {
    throw ConfigError("LACUNA_INSTRUCTION_SET: unknown instruction set '" + cap + "'; " +
                      suggest_name(cap, names));
  }
  if (chosen.empty()) fail_without_kernels(cap);
  hwy::DisableTargets(disabled & ~kept);
  cap_dense_provider(chosen);
  return chosen;
}

}  // namespace

const std::string& active_instruction_set() {
  static const std::string chosen = choose_instruction_set();
  return chosen;
}

std::string float_instruction_set() {
  const std::string& set = active_instruction_set();
  return set == "avx-vnni" ? "avx2" : set;
}

std::vector<std::string> compiled_instruction_sets() {
  if (!kOnlySet.empty()) return {std::string(kOnlySet)};
  std::vector<std::string> names;
  for (const Level& level : levels()) {
    if (level.targets == 0 || (HWY_TARGETS & level.targets) != 0) names.push_back(level.name);
  }
  return names;
}

std::string uncompiled_instruction_set() {
  return uncompiled_instruction_set(hwy::SupportedTargets(), HWY_TARGETS);
}

std::string uncompiled_instruction_set(int64_t supported, int64_t compiled) {
  for (const Level& level : levels()) {
    if (level.multiplies_bytes) continue;  // which the targets do not tell from the level below
    const int64_t runnable = supported & level.targets;
    if (runnable != 0) return (runnable & compiled) == 0 ? level.name : "";
  }
  return "";
}

bool use_reference_kernels() {
  static const bool reference = active_instruction_set() == "reference";
  return reference;
}

}  // namespace lacuna
