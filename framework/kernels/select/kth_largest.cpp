// A sample of the keys gives two bounds that almost surely enclose the k-th largest. A vectorized
// pass counts the keys above and at the bounds, and packs the keys between them, in which the
// search continues. Keys that many items share become bounds: they are counted, not packed.
#include "lacuna/framework/kernels/select/kth_largest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/select/kth_largest.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/packing.inc"

#ifndef LACUNA_KTH_LARGEST
#define LACUNA_KTH_LARGEST
namespace lacuna {
namespace {

struct Bounds {
  uint32_t low = 0, high = 0;  // low ≤ high
};

// The numbers of keys above the bounds, at the higher bound, between the bounds, and at the lower
// bound if it differs from the higher one.
struct Parted {
  int64_t above = 0, at_high = 0, between = 0, at_low = 0;
};

inline uint32_t key_of(uint32_t key) { return key; }
inline uint32_t key_of(float score) { return order_key(score); }

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

using Keys = hn::CappedTag<uint32_t, 16>;
using KeyVector = hn::Vec<Keys>;
constexpr auto kKeyLanes = static_cast<int64_t>(hn::MaxLanes(Keys()));

HWY_INLINE KeyVector load_keys(const uint32_t* keys) { return hn::LoadU(Keys(), keys); }

// The keys of scores: see order_key.
HWY_INLINE KeyVector load_keys(const float* scores) {
  const hn::RebindToFloat<Keys> f;
  const hn::RebindToSigned<Keys> i;
  const auto score = hn::Add(hn::LoadU(f, scores), hn::Zero(f));
  const auto bits = hn::BitCast(i, score);
  const auto sign = hn::Set(i, static_cast<int32_t>(0x80000000u));
  const auto flipped = hn::Or(hn::BroadcastSignBit(bits), sign);  // all bits if negative
  const auto keys = hn::Xor(bits, flipped);
  return hn::BitCast(Keys(), hn::IfThenZeroElse(hn::RebindMask(i, hn::IsNaN(score)), keys));
}

// Packs the keys between the bounds, with room for one more vector.
template <class Item>
HWY_INLINE Parted part(const Item* items, int64_t count, const Bounds& bounds, uint32_t* between) {
  const Keys d;
  const auto low = hn::Set(d, bounds.low), high = hn::Set(d, bounds.high);
  Parted found;
  int64_t i = 0;
  for (; i + kKeyLanes <= count; i += kKeyLanes) {
    const auto keys = load_keys(items + i);
    const auto count_of = [&](auto mask)
                              HWY_ATTR { return static_cast<int64_t>(hn::CountTrue(d, mask)); };
    found.above += count_of(hn::Gt(keys, high));
    found.at_high += count_of(hn::Eq(keys, high));
    found.at_low += count_of(hn::Eq(keys, low));
    const Packing<Keys> chosen(hn::And(hn::Gt(keys, low), hn::Gt(high, keys)));
    hn::StoreU(chosen(keys), d, between + found.between);
    found.between += chosen.count();
  }
  for (; i < count; ++i) {
    const uint32_t key = key_of(items[i]);
    between[found.between] = key;
    found.above += key > bounds.high ? 1 : 0;
    found.at_high += key == bounds.high ? 1 : 0;
    found.at_low += key == bounds.low ? 1 : 0;
    found.between += key > bounds.low && key < bounds.high ? 1 : 0;
  }
  if (bounds.low == bounds.high) found.at_low = 0;
  return found;
}

Parted part_scores(const float* scores, int64_t count, const Bounds& bounds, uint32_t* between) {
  return part(scores, count, bounds, between);
}

Parted part_keys(const uint32_t* keys, int64_t count, const Bounds& bounds, uint32_t* between) {
  return part(keys, count, bounds, between);
}

// Bits of the 64 scores whose keys are above the key, and equal to it.
void compare_word(const float* scores, uint32_t key, uint64_t& above, uint64_t& equal) {
  const Keys d;
  const auto least = hn::Set(d, key);
  above = equal = 0;
  for (int64_t i = 0; i < 64; i += kKeyLanes) {
    const auto keys = load_keys(scores + i);
    uint8_t of_above[8] = {}, of_equal[8] = {};
    hn::StoreMaskBits(d, hn::Gt(keys, least), of_above);
    hn::StoreMaskBits(d, hn::Eq(keys, least), of_equal);
    const auto word = [](const uint8_t* bytes) { return bytes[0] | uint64_t{bytes[1]} << 8; };
    above |= word(of_above) << i;
    equal |= word(of_equal) << i;
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(part_scores);
HWY_EXPORT(part_keys);
HWY_EXPORT(compare_word);

constexpr int64_t kVector = 16;  // keys that `part` may write in excess

Parted run_part(const float* scores, int64_t count, const Bounds& bounds, uint32_t* between) {
  return HWY_DYNAMIC_DISPATCH(part_scores)(scores, count, bounds, between);
}
Parted run_part(const uint32_t* keys, int64_t count, const Bounds& bounds, uint32_t* between) {
  return HWY_DYNAMIC_DISPATCH(part_keys)(keys, count, bounds, between);
}

// Bounds that enclose the k-th largest if the sample is representative: its place in the sample,
// and four standard deviations to either side.
template <class Item>
Bounds sampled_bounds(std::span<const Item> items, int64_t k) {
  const auto size = static_cast<int64_t>(items.size());
  const int64_t count = std::min<int64_t>(size / 16, 2048), step = size / count;
  std::vector<uint32_t> sample(static_cast<size_t>(count));
  uint64_t place = 0;  // a different place in each step, in case the data is periodic
  for (int64_t i = 0; i < count; ++i) {
    place = place * 6364136223846793005u + 1442695040888963407u;
    const auto offset = static_cast<int64_t>((place >> 33) % static_cast<uint64_t>(step));
    sample[static_cast<size_t>(i)] = key_of(items[static_cast<size_t>(i * step + offset)]);
  }
  const double share = static_cast<double>(k) / static_cast<double>(size);
  const auto rank = static_cast<int64_t>(share * static_cast<double>(count));
  const auto margin =
      static_cast<int64_t>(4.0 * std::sqrt(static_cast<double>(count) * share * (1.0 - share))) + 4;
  Bounds bounds{.low = 0, .high = ~uint32_t{0}};
  auto from = sample.begin();
  if (rank - margin >= 0) {
    from = sample.begin() + (rank - margin);
    std::nth_element(sample.begin(), from, sample.end(), std::greater<>());
    bounds.high = *from;
  }
  if (rank + margin < count) {
    const auto to = sample.begin() + (rank + margin);
    std::nth_element(from, to, sample.end(), std::greater<>());
    bounds.low = *to;
  }
  return bounds;
}

constexpr int kDigit = 12;  // bits of a key in one histogram

struct Digit {
  uint32_t digit = 0;
  int64_t k = 0;     // how many of the k largest have this digit
  size_t count = 0;  // how many keys have this digit
};

// The digit at `shift` of the k-th largest key; all keys have the same higher digits. There are
// four histograms because consecutive keys often fall into one bin and would wait for each other.
template <class Item>
Digit digit_of_kth(std::span<const Item> items, int64_t k, int shift) {
  constexpr uint32_t kBins = 1 << kDigit;
  std::array<std::array<uint32_t, kBins>, 4> histogram{};
  const auto bin_of = [&](Item item) { return key_of(item) >> shift & (kBins - 1); };
  const size_t fours = items.size() / 4 * 4;
  for (size_t i = 0; i < fours; i += 4) {
    for (size_t j = 0; j < 4; ++j) ++histogram[j][bin_of(items[i + j])];
  }
  for (size_t i = fours; i < items.size(); ++i) ++histogram[0][bin_of(items[i])];
  const auto in_bin = [&](uint32_t bin) {
    return int64_t{histogram[0][bin]} + histogram[1][bin] + histogram[2][bin] + histogram[3][bin];
  };
  uint32_t bin = kBins - 1;
  for (; in_bin(bin) < k; --bin) k -= in_bin(bin);
  return {bin, k, static_cast<size_t>(in_bin(bin))};
}

// The keys with this digit.
template <class Item>
Array<uint32_t> keys_with(const Digit& digit, std::span<const Item> items, int shift) {
  constexpr uint32_t kBins = 1 << kDigit;
  Array<uint32_t> keys(digit.count + 1);  // every key is written, but kept only if it has the digit
  size_t count = 0;
  for (const Item item : items) {
    const uint32_t key = key_of(item);
    keys[count] = key;
    count += (key >> shift & (kBins - 1)) == digit.digit ? 1 : 0;
  }
  keys.resize(count);
  return keys;
}

// Searches among few keys, and reorders them.
KthLargest kth_of_few(std::span<uint32_t> keys, int64_t k) {
  const auto nth = keys.begin() + (k - 1);
  std::nth_element(keys.begin(), nth, keys.end(), std::greater<>());
  const uint32_t key = *nth;
  return {key, k - std::count_if(keys.begin(), nth, [&](uint32_t c) { return c > key; })};
}

template <class Item>
KthLargest kth_by_histograms(std::span<const Item> items, int64_t k) {
  constexpr size_t kFew = 1024;
  constexpr int kHigh = 32 - kDigit, kMiddle = kHigh - kDigit;
  Digit found = digit_of_kth(items, k, kHigh);
  Array<uint32_t> keys = keys_with(found, items, kHigh);
  if (keys.size() > kFew) {
    const std::span<const uint32_t> left(keys);
    found = digit_of_kth(left, found.k, kMiddle);
    keys = keys_with(found, left, kMiddle);
  }
  return kth_of_few(keys, found.k);
}

template <class Item>
KthLargest find_kth_largest(std::span<const Item> items, int64_t k) {
  constexpr int64_t kFew = 1024, kChunk = 4096;
  const auto size = static_cast<int64_t>(items.size());
  if (size <= kFew) {
    std::array<uint32_t, kFew> keys;
    std::ranges::transform(items, keys.begin(), [](Item item) { return key_of(item); });
    return kth_of_few(std::span(keys).first(items.size()), k);
  }
  if (use_reference_kernels()) return kth_by_histograms(items, k);
  const Bounds bounds = sampled_bounds(items, k);
  const int64_t most = std::max(size / 8, std::min(size / 2, kChunk));  // fewer than there are keys
  Array<uint32_t> keys(static_cast<size_t>(most + kChunk + kVector));
  Parted found;
  for (int64_t i = 0; i < size && found.between <= most; i += kChunk) {
    const Parted some =
        run_part(items.data() + i, std::min(kChunk, size - i), bounds, keys.data() + found.between);
    found = {.above = found.above + some.above,
             .at_high = found.at_high + some.at_high,
             .between = found.between + some.between,
             .at_low = found.at_low + some.at_low};
  }
  if (found.between > most || k <= found.above) return kth_by_histograms(items, k);
  int64_t left = k - found.above;
  if (left <= found.at_high) return {bounds.high, left};
  left -= found.at_high;
  if (left <= found.between) {
    return find_kth_largest(
        std::span<const uint32_t>(keys).first(static_cast<size_t>(found.between)), left);
  }
  left -= found.between;
  return left <= found.at_low ? KthLargest{bounds.low, left} : kth_by_histograms(items, k);
}

// The same for the scores of one word, which may be fewer than 64.
void compare_plainly(std::span<const float> scores, uint32_t key, uint64_t& above,
                     uint64_t& equal) {
  above = equal = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const uint32_t mine = order_key(scores[i]);
    above |= uint64_t{mine > key} << i;
    equal |= uint64_t{mine == key} << i;
  }
}

}  // namespace

KthLargest kth_largest(std::span<const uint32_t> keys, int64_t k) {
  return find_kth_largest(keys, k);
}

KthLargest kth_largest(std::span<const float> scores, int64_t k) {
  return find_kth_largest(scores, k);
}

BitMask largest_mask(std::span<const float> scores, int64_t k) {
  constexpr size_t kWord = 64;
  const auto size = static_cast<int64_t>(scores.size());
  if (k >= size) return BitMask::ones(size);
  if (k <= 0) return BitMask::zeros(size);
  KthLargest least = kth_largest(scores, k);
  const auto run = HWY_DYNAMIC_DISPATCH(compare_word);
  std::vector<uint64_t> words((scores.size() + kWord - 1) / kWord);
  for (size_t w = 0; w < words.size(); ++w) {
    const auto of_word = scores.subspan(w * kWord, std::min(kWord, scores.size() - w * kWord));
    uint64_t above = 0, equal = 0;
    if (of_word.size() < kWord || use_reference_kernels()) {
      compare_plainly(of_word, least.key, above, equal);
    } else {
      run(of_word.data(), least.key, above, equal);
    }
    for (; equal != 0 && least.ties > 0; equal &= equal - 1, --least.ties) above |= equal & -equal;
    words[w] = above;
  }
  return BitMask::from_words(size, std::move(words));
}

}  // namespace lacuna
#endif  // HWY_ONCE
