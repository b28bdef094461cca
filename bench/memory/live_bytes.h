// The count of what this process holds: buffers (core/buffer.h) and everything else that C++
// allocates (vectors, indices), in bytes; exact, also between two looks.
#pragma once

#include <cstdint>

namespace lacuna::bench {

/// Bytes held now.
int64_t live_bytes();
/// The most that was held at once since the last `reset_peak`.
int64_t peak_live_bytes();
/// The largest single allocation since then.
int64_t largest_allocation();
void reset_peak();

/// The memory of this process as the system reports it: now (VmRSS) and at most (VmHWM).
int64_t resident_bytes();
int64_t most_resident_bytes();

}  // namespace lacuna::bench
