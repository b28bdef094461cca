// The revision of lacuna's arithmetic, as checkpoints and run folders state it.
#pragma once

#include <cstdint>

namespace lacuna {

/// Raise it by one with each change after which the same configuration, on the same kind of
/// processor, gives other bits: another order of summation in a kernel, another tiling, another
/// way to draw random numbers. Leave it for changes that only add features, or that only change
/// speed. Checkpoints of other revisions stay readable; resuming one prints a line
/// (docs/reference/checkpoint.md, What is promised).
inline constexpr int64_t kArithmeticRevision = 8;

}  // namespace lacuna
