// Growth at random: positions drawn without replacement, the same ones whatever they are held by.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// `mask` and positions outside it drawn without replacement, uniformly, until each group has
/// `per_group`. A function of the generator's key and the mask alone. *Cost:* O(drawn) where the
/// mask is sparse, O(numel) bits otherwise.
BitMask grow_random(const CounterRng& rng, int64_t per_group, const BitMask& mask,
                    const GroupIndex& groups);

/// `present` grown by the same draws. *Memory:* a bit a position for matrices up to 2^30 positions
/// that are not too sparse for it, else 13 to 28 bytes a drawn position.
Positions grow_random(const CounterRng& rng, int64_t per_group, const Positions& present,
                      const GroupIndex& groups);

namespace internal {
/// What a random growth remembers its draws by.
enum class Membership { Bits, HashSet };
Positions grow_random(const CounterRng& rng, int64_t per_group, const Positions& present,
                      const GroupIndex& groups, Membership membership);
}  // namespace internal

}  // namespace lacuna
