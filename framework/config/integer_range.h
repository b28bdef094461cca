// The ranges of a configuration's integers.
#pragma once

#include <cstdint>
#include <string_view>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// The largest integer of a key without a narrower range, and the largest that `require_at_least`
/// accepts: sums of a few of them and of sizes fit into 64 bits, and a double represents each
/// exactly.
inline constexpr int64_t kMostInteger = int64_t{1} << 53;

/// Returns `value`, which the map has under `key`. *Errors:* ConfigError with the key's position
/// unless low ≤ value ≤ high.
int64_t require_integer(const Config& map, std::string_view key, int64_t value, int64_t low,
                        int64_t high = kMostInteger);

/// The key "seed", an integer from 0 to 2⁶³ − 1. Its default is written into the tree. *Errors:*
/// ConfigError.
uint64_t read_seed(const Config& map);

}  // namespace lacuna
