// The stream is read in chunks of 4096 scores, which fit the first-level cache together with their
// survivors. |score| as bits orders like the float, so one integer comparison per vector decides,
// and the survivors' bits and offsets are packed: no branch depends on the scores.
#include "lacuna/framework/kernels/select/topk.hpp"

#include <algorithm>
#include <bit>

#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/select/kth_largest.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/select/topk.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/packing.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {

// Writes the bits of the |scores| above the threshold, and their offsets; returns their number.
// Both outputs have room for `count` entries and a vector.
int64_t SelectAbove(const float* scores, int64_t count, int32_t threshold, uint32_t* keys,
                    uint32_t* offsets) {
  const hn::CappedTag<int32_t, 16> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto above = hn::Set(d, threshold), nan = hn::Set(d, 0x7f800001);
  const auto magnitude = hn::Set(d, 0x7fffffff);
  const auto step = hn::Set(du, static_cast<uint32_t>(lanes));
  auto offset = hn::Iota(du, 0);
  int64_t i = 0, found = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits =
        hn::And(hn::LoadU(d, reinterpret_cast<const int32_t*>(scores + i)), magnitude);
    const auto chosen = hn::And(hn::Gt(bits, above), hn::Gt(nan, bits));
    const Packing<decltype(du)> packing(hn::RebindMask(du, chosen));
    hn::StoreU(packing(hn::BitCast(du, bits)), du, keys + found);
    hn::StoreU(packing(offset), du, offsets + found);
    found += packing.count();
    offset = hn::Add(offset, step);
  }
  for (; i < count; ++i) {
    const auto bits = static_cast<int32_t>(std::bit_cast<uint32_t>(scores[i]) & 0x7fffffffu);
    keys[found] = static_cast<uint32_t>(bits);
    offsets[found] = static_cast<uint32_t>(i);
    found += bits > threshold && bits <= 0x7f800000 ? 1 : 0;
  }
  return found;
}

}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {

HWY_EXPORT(SelectAbove);

namespace {

constexpr int64_t kChunk = 4096;

int64_t select_above_reference(const float* scores, int64_t count, int32_t threshold,
                               uint32_t* keys, uint32_t* offsets) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(scores[i]) & 0x7fffffffu;
    if (static_cast<int32_t>(bits) <= threshold || bits > 0x7f800000u) continue;
    keys[found] = bits;
    offsets[found++] = static_cast<uint32_t>(i);
  }
  return found;
}

}  // namespace

TopKCollector::TopKCollector(int64_t k, float floor)
    : k_(k),
      threshold_(floor >= 0.0f ? std::bit_cast<int32_t>(floor + 0.0f) : -1),
      scratch_(static_cast<size_t>(2 * (kChunk + 16))) {}

void TopKCollector::offer(std::span<const float> scores, int64_t first) {
  if (k_ <= 0) return;
  uint32_t* keys = scratch_.data();
  uint32_t* offsets = keys + kChunk + 16;
  const int64_t most = 2 * k_ + 2 * kChunk;
  if (indices_.capacity() == 0) {  // growing by doubling could take twice as much
    keys_.reserve(static_cast<size_t>(most + kChunk));
    indices_.reserve(keys_.capacity());
  }
  for (int64_t begin = 0; begin < static_cast<int64_t>(scores.size()); begin += kChunk) {
    const int64_t count = std::min(kChunk, static_cast<int64_t>(scores.size()) - begin);
    const float* chunk = scores.data() + begin;
    const int64_t found =
        use_reference_kernels()
            ? select_above_reference(chunk, count, threshold_, keys, offsets)
            : HWY_DYNAMIC_DISPATCH(SelectAbove)(chunk, count, threshold_, keys, offsets);
    keys_.insert(keys_.end(), keys, keys + found);
    const size_t old = indices_.size();
    indices_.resize(old + static_cast<size_t>(found));
    for (int64_t i = 0; i < found; ++i) {
      indices_[old + static_cast<size_t>(i)] = first + begin + offsets[i];
    }
    if (size() >= most) shrink();
  }
}

// Keeps the k largest in their order. Later scores must exceed the smallest of these: at equal
// |score|, the earlier one is kept.
void TopKCollector::shrink() {
  if (size() <= k_) return;
  const KthLargest smallest = kth_largest(keys_, k_);
  int64_t ties = smallest.ties;
  size_t kept = 0;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const uint32_t key = keys_[i];
    keys_[kept] = key;
    indices_[kept] = indices_[i];
    if (key == smallest.key) [[unlikely]] {
      kept += ties-- > 0 ? 1 : 0;
    } else {  // added, without a branch
      kept += key > smallest.key ? 1 : 0;
    }
  }
  keys_.resize(kept);
  indices_.resize(kept);
  threshold_ = static_cast<int32_t>(smallest.key);
}

std::vector<int64_t> TopKCollector::take() {
  shrink();
  return std::move(indices_);
}

}  // namespace lacuna
#endif  // HWY_ONCE
