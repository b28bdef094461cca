// A block is a lane: its four words are the low halves of four vectors of 64-bit lanes, so that a
// round is two widening multiplications, two shifts and two three-way exclusive ors. What is left
// in the upper halves never reaches the lower ones. Two vectors at a time, for one's ten rounds
// wait for each other.
#include "lacuna/framework/kernels/select/draws.hpp"

#include <bit>

#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/select/draws.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<uint64_t, 8>;
using Words = hn::Vec<Lanes>;

struct Counter {
  Words c0, c1, c2, c3;
};

// Of the lower halves.
HWY_INLINE Words product(Words word, uint64_t factor) {
  const Lanes d;
#if HWY_TARGET == HWY_SCALAR  // a vector of one lane has no halves
  return hn::Set(d, (hn::GetLane(word) & 0xffffffffu) * factor);
#else
  const hn::RepartitionToNarrow<Lanes> half;
  return hn::MulEven(hn::BitCast(half, word), hn::BitCast(half, hn::Set(d, factor)));
#endif
}

HWY_INLINE void philox_round(Counter& c, Words key0, Words key1) {
  const Words p0 = product(c.c0, 0xD2511F53u), p1 = product(c.c2, 0xCD9E8D57u);
  c.c0 = hn::Xor3(hn::ShiftRight<32>(p1), c.c1, key0);
  c.c1 = p1;
  c.c2 = hn::Xor3(hn::ShiftRight<32>(p0), c.c3, key1);
  c.c3 = p0;
}

HWY_INLINE Counter first_counter(uint64_t block, uint64_t stream) {
  const Lanes d;
  const Words blocks = hn::Add(hn::Iota(d, 0), hn::Set(d, block));
  return {blocks, hn::ShiftRight<32>(blocks), hn::Set(d, stream), hn::Set(d, stream >> 32)};
}

HWY_INLINE void store_words(const Counter& c, uint64_t* into) {
  const Lanes d;
  hn::StoreU(hn::Or(hn::ShiftLeft<32>(c.c1), hn::And(c.c0, hn::Set(d, 0xffffffffu))), d, into);
}

// As many as fit two vectors; returns their number.
int64_t draw_vectors(uint64_t key0, uint64_t key1, uint64_t stream, uint64_t first, int64_t count,
                     uint64_t* into) {
  const Lanes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const uint64_t block = first + static_cast<uint64_t>(i);
    Counter a = first_counter(block, stream);
    Counter b = first_counter(block + static_cast<uint64_t>(lanes), stream);
    for (uint64_t round = 0; round < 10; ++round) {
      const Words k0 = hn::Set(d, key0 + round * 0x9E3779B9u);
      const Words k1 = hn::Set(d, key1 + round * 0xBB67AE85u);
      philox_round(a, k0, k1);
      philox_round(b, k0, k1);
    }
    store_words(a, into + i);
    store_words(b, into + i + lanes);
  }
  return i;
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {

HWY_EXPORT(draw_vectors);

void draw_words(const CounterRng& rng, uint64_t first, std::span<uint64_t> words) {
  size_t i = 0;
  if (!use_reference_kernels()) {
    const auto [key0, key1] = rng.key();
    i = static_cast<size_t>(HWY_DYNAMIC_DISPATCH(draw_vectors)(
        key0, key1, rng.stream(), first, static_cast<int64_t>(words.size()), words.data()));
  }
  for (; i < words.size(); ++i) {
    const auto block = rng.block(first + i);
    words[i] = uint64_t{block[1]} << 32 | block[0];
  }
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
