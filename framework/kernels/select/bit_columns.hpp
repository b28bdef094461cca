// Converts the bits of a mask to a list of their places.
#pragma once

#include <cstdint>
#include <span>

namespace lacuna {

/// Writes the places of the set bits of [begin, end), counted from `begin`, ascending; returns
/// their number. Bit i is bit i % 64 of word i / 64. *Requires* room for kBitColumnsSlack entries
/// after the last.
int64_t bit_columns(std::span<const uint64_t> words, int64_t begin, int64_t end, uint32_t* into);
inline constexpr int64_t kBitColumnsSlack = 16;

}  // namespace lacuna
