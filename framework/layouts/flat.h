// What the masked layout knows of a pattern.
#pragma once

#include <utility>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

struct MaskIndex final : PatternIndex {
  explicit MaskIndex(BitMask mask_) : mask(std::move(mask_)) {}
  int64_t bytes() const override {
    return static_cast<int64_t>(mask.words().size() * sizeof(uint64_t));
  }

  const BitMask mask;
};

}  // namespace lacuna
