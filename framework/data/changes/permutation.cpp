#include "lacuna/framework/data/changes/permutation.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "lacuna/framework/kernels/select/draws.hpp"

namespace lacuna {

std::vector<int64_t> seeded_permutation(int64_t size, uint64_t seed, std::string_view name,
                                        uint64_t stream) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  const CounterRng rng(seed, name, stream);
  constexpr size_t kDrawn = 128;  // at a time
  std::array<uint64_t, kDrawn> numbers;
  std::array<uint32_t, 4 * kDrawn> words;
  for (size_t last = order.size(); last > 1;) {
    const size_t count = std::min(kDrawn, last - 1);
    for (size_t i = 0; i < count; ++i) numbers[i] = last - 1 - i;
    draw_blocks(rng, std::span(numbers).first(count), words);
    for (size_t i = 0; i < count; ++i, --last) {
      std::swap(order[last - 1], order[CounterRng::below_of(drawn_block(words, i), last)]);
    }
  }
  return order;
}

ScatteredOrder::ScatteredOrder(int64_t size, uint64_t seed, std::string_view name, uint64_t stream)
    : rng_(seed, name, stream), size_(static_cast<uint64_t>(size)) {
  while (half_bits_ < 31 && (uint64_t{1} << 2 * half_bits_) < size_) ++half_bits_;
}

int64_t ScatteredOrder::at(int64_t index) const {
  constexpr uint64_t kRounds = 6;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto number = static_cast<uint64_t>(index);
  do {
    uint64_t left = number >> half_bits_, right = number & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (rng_.bits(round << half_bits_ | right) & mask);
      left = std::exchange(right, mixed);
    }
    number = left << half_bits_ | right;
  } while (number >= size_);
  return static_cast<int64_t>(number);
}

}  // namespace lacuna
