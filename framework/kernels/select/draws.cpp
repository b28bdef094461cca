#include "lacuna/framework/kernels/select/draws.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/select/draws.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/philox.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void draw_vectors(const CounterRng& rng, uint64_t first, int64_t count, uint64_t* into) {
  const PhiloxLanes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for_each_philox(rng, first, count,
                  [=](int64_t i, const PhiloxWords& a, const PhiloxWords& b) HWY_ATTR {
                    const PhiloxVector pair_a = philox_pair(a.c0, a.c1);
                    const PhiloxVector pair_b = philox_pair(b.c0, b.c1);
                    if (i + 2 * lanes <= count) {
                      hn::StoreU(pair_a, d, into + i);
                      hn::StoreU(pair_b, d, into + i + lanes);
                      return;
                    }
                    HWY_ALIGN std::array<uint64_t, 2 * hn::MaxLanes(d)> rest;
                    hn::Store(pair_a, d, rest.data());
                    hn::Store(pair_b, d, rest.data() + lanes);
                    std::copy_n(rest.begin(), count - i, into + i);
                  });
}

// `count` is a multiple of 16.
void draw_block_vectors(const CounterRng& rng, const uint64_t* numbers, int64_t count,
                        uint32_t* words) {
  const PhiloxLanes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  PhiloxWords a, b;
  for (int64_t i = 0; i < count; i += 2 * lanes) {
    philox_vectors(rng.key(), rng.stream(), hn::LoadU(d, numbers + i),
                   hn::LoadU(d, numbers + i + lanes), a, b);
    store_philox_blocks(a, words + 4 * i);
    store_philox_blocks(b, words + 4 * (i + lanes));
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {

HWY_EXPORT(draw_vectors);
HWY_EXPORT(draw_block_vectors);

void draw_blocks(const CounterRng& rng, std::span<const uint64_t> numbers,
                 std::span<uint32_t> words) {
  constexpr size_t kVectors = 16;  // in pairs, of at most 8 lanes
  const size_t whole = use_reference_kernels() ? 0 : numbers.size() / kVectors * kVectors;
  if (whole > 0) {
    HWY_DYNAMIC_DISPATCH(draw_block_vectors)
    (rng, numbers.data(), static_cast<int64_t>(whole), words.data());
  }
  for (size_t i = whole; i < numbers.size(); ++i) {
    std::ranges::copy(rng.block(numbers[i]), words.begin() + static_cast<ptrdiff_t>(4 * i));
  }
}

void draw_words(const CounterRng& rng, uint64_t first, std::span<uint64_t> words) {
  if (!use_reference_kernels()) {
    return HWY_DYNAMIC_DISPATCH(draw_vectors)(rng, first, static_cast<int64_t>(words.size()),
                                              words.data());
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const auto block = rng.block(first + i);
    words[i] = uint64_t{block[1]} << 32 | block[0];
  }
}

void DrawnWords::refill() {
  std::array<uint64_t, kBuffer / 4> numbers;
  std::iota(numbers.begin(), numbers.end(), block_);
  draw_blocks(rng_, numbers, words_);
  block_ += numbers.size();
  next_ = 0;
}

void Draws::refill() {
  first_ += kBuffer;
  next_ = 0;
  draw_words(rng_, first_, words_);
}

void Draws::set_bound(uint64_t bound) {
  bound_ = bound;
  limit_ = UINT64_MAX - UINT64_MAX % bound;
  is_power_of_two_ = std::has_single_bit(bound);
}

}  // namespace lacuna
#endif  // HWY_ONCE
