#include "lacuna/framework/data/permutation.hpp"

#include <numeric>
#include <utility>

#include "lacuna/framework/core/random.h"

namespace lacuna {

std::vector<int64_t> seeded_permutation(int64_t size, uint64_t seed, std::string_view name,
                                        uint64_t stream) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  const CounterRng rng(seed, name, stream);
  for (size_t last = order.size(); last > 1; --last) {
    std::swap(order[last - 1], order[rng.below(last - 1, last)]);
  }
  return order;
}

}  // namespace lacuna
