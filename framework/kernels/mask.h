// Applying bit masks to arrays.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// values[i] = mask[i] ? values[i] : 0, a selection: NaN and Inf at unset bits do not leak.
/// *Requires* values.size() == mask.size(). *Cost:* one read of the array, and a write where
/// it changes.
void select_by_mask(const BitMask& mask, std::span<float> values);
/// The same of the part of an array that begins at bit `first`, a multiple of 64. *Requires* the
/// part to be within the mask.
void select_by_mask(const BitMask& mask, int64_t first, std::span<float> part);

}  // namespace lacuna
