// What kernels choose by: the processor's properties, never timings, so that the same machine
// always computes in the same way. The environment variable LACUNA_PROCESSOR replaces them by those
// of a kind: "intel" (a server of theirs, caches of 48 KiB and 2 MiB) or "amd" (32 KiB and 1 MiB).
// All functions throw ConfigError when it holds another name. It is read once.
#pragma once

#include <cstdint>

namespace lacuna {

/// Bytes of a core's first-level data cache; 32 KiB where the system does not tell.
int64_t first_level_bytes();

/// Whether an array of so many bytes, of which each line is written once and whole, is better
/// written around the caches: a store then need not read the line first, a third of the traffic of
/// a pass from one array to another. So it is on Intel's servers for what does not fit a core's
/// second level, whose third level gives no more than memory does; elsewhere the next reader finds
/// it there.
bool writes_around_caches(int64_t bytes);

/// Whether one value is better spread over a vector's lanes by a load than by a permute of some
/// that are in a register: on Intel's servers, which load two vectors of 64 bytes in a cycle, while
/// permutes take a port of their multiply-adds. AMD's of the same width load one, which is what
/// bounds sparse products there. LACUNA_KERNELS=machine fixes the answer when compiling, so that
/// the largest kernels are compiled in one of the two ways.
#ifdef LACUNA_SPREADS_BY_LOADS
constexpr bool spreads_by_loads() { return LACUNA_SPREADS_BY_LOADS; }
#else
bool spreads_by_loads();
#endif

}  // namespace lacuna
