// Applying bit masks to arrays.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// values[i] = mask[i] ? values[i] : 0, a selection, so NaN and Inf at unset bits become zero.
/// *Requires* values.size() == mask.size(). *Cost:* one read of the array, and a write where it
/// changes.
void select_by_mask(const BitMask& mask, std::span<float> values);

}  // namespace lacuna
