// Seeded permutations: the order in which examples are drawn.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna {

/// The numbers 0 … size − 1 in an order that is a pure function of (seed, name, stream), uniform
/// over all orders. *Source:* Fisher and Yates's shuffle over a CounterRng.
std::vector<int64_t> seeded_permutation(int64_t size, uint64_t seed, std::string_view name,
                                        uint64_t stream = 0);

/// Another order of the numbers 0 … size − 1, a pure function of (seed, name, stream) too, which
/// takes no memory: each number is computed. It looks random and is not uniform over all orders, of
/// which there are more than seeds. *Source:* Luby and Rackoff's Feistel network over the next
/// power of four; numbers beyond the size are sent through it again (Black and Rogaway's cycle
/// walking).
class ScatteredOrder {
 public:
  /// *Requires* size ≥ 1.
  ScatteredOrder(int64_t size, uint64_t seed, std::string_view name, uint64_t stream = 0);
  /// The number at `index`. *Cost:* 24 draws on average at most.
  int64_t at(int64_t index) const;

 private:
  CounterRng rng_;
  uint64_t size_;
  int half_bits_ = 1;
};

}  // namespace lacuna
