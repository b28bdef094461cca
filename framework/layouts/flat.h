// What the masked layout knows of a pattern.
#pragma once

#include <utility>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

struct MaskIndex final : PatternIndex {
  explicit MaskIndex(BitMask mask) : bits(std::move(mask)) {}
  int64_t bytes() const override {
    return static_cast<int64_t>(bits.words().size() * sizeof(uint64_t));
  }
  const BitMask* mask() const override { return &bits; }

  const BitMask bits;
};

}  // namespace lacuna
