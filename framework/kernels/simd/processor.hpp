// Properties of the processor by which kernels are chosen (never timings, so that a machine always
// computes in the same way). The environment variable LACUNA_PROCESSOR replaces them by those of a
// kind: "intel" (a server, caches of 48 KiB and 2 MiB) or "amd" (32 KiB and 1 MiB). It is read
// once; all functions throw ConfigError if it has another value.
#pragma once

#include <cstdint>

namespace lacuna {

/// Bytes of a core's first-level data cache; 32 KiB if the system does not report it.
int64_t first_level_bytes();

/// Whether an array of so many bytes, of which each line is written once and completely, should be
/// written around the caches. A store then need not read the line first, which saves a third of the
/// traffic of a pass from one array to another. This pays on Intel's servers if the array does not
/// fit a core's second level, because their third level is no faster than memory; elsewhere the
/// next reader finds the array in the third level.
bool writes_around_caches(int64_t bytes);

/// Whether it is better to spread one value over a vector's lanes by a load than by a permute of a
/// register. This holds on Intel's servers, which load two vectors of 64 bytes per cycle, while
/// permutes use a port of their multiply-adds. AMD's cores of the same width load one, and these
/// loads limit sparse products. LACUNA_KERNELS=machine fixes the answer at compile time, so that
/// the largest kernels are compiled in only one of the two ways.
#ifdef LACUNA_SPREADS_BY_LOADS
constexpr bool spreads_by_loads() { return LACUNA_SPREADS_BY_LOADS; }
#else
bool spreads_by_loads();
#endif

}  // namespace lacuna
