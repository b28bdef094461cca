// Loops of fused multiply-adds that are fed from a place in memory: what the processor can do at
// most, now.
#pragma once

#include <cstdint>
#include <span>

namespace lacuna::bench {

/// Floats that a pass of fed_loop reads in one round at the least; `data` holds a multiple.
inline constexpr int64_t kFedLoopFloats = 1024;

/// Multiplies and adds each element of `data`, `rounds` times over, in vectors of the instruction
/// set in use, each operand read from memory where it is needed. Two operations an element.
/// *Requires* data aligned to 64 bytes, and a multiple of kFedLoopFloats elements. The result
/// depends on every one of them; its value means nothing.
float fed_loop(std::span<const float> data, int64_t rounds);

/// As many operations as fed_loop on `elements` elements, a multiple of kFedLoopFloats, but all
/// from registers.
float register_loop(int64_t elements, int64_t rounds);

/// Adds the elements up, as fast as they can be read.
float read_loop(std::span<const float> data);

}  // namespace lacuna::bench
