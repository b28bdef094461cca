// Seeded permutations: the order in which examples are drawn.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lacuna {

/// The numbers 0 … size − 1 in an order that is a pure function of (seed, name, stream), uniform
/// over all orders. *Source:* Fisher and Yates's shuffle over a CounterRng.
std::vector<int64_t> seeded_permutation(int64_t size, uint64_t seed, std::string_view name,
                                        uint64_t stream = 0);

}  // namespace lacuna
