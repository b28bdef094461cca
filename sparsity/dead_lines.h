// Rows and columns of a mask without a position, and what two masks have in common.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

/// Rows and columns (dimension 0, and all others together) that hold no position.
struct DeadLines {
  int64_t rows = 0, columns = 0;
  friend bool operator==(const DeadLines&, const DeadLines&) = default;
};

/// *Cost:* O(positions).
DeadLines dead_lines(const Positions& positions);
/// The same of a shape's mask. *Cost:* a word at a time.
DeadLines dead_lines(const BitMask& mask, const Shape& shape);

/// Bits that two masks of one size have in common.
int64_t count_common(const BitMask& a, const BitMask& b);

}  // namespace lacuna
