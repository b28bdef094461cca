// One 64-bit word of the mask covers 64 floats: 4 vectors of AVX-512, 8 of AVX2, 16 of SSE. The
// word stays in a register; LoadMaskBits takes each vector's bits from it.
#include "lacuna/framework/kernels/pointwise/mask.hpp"

#include <fmt/core.h>

#include <cstring>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/mask.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// `count` is a multiple of 64 except at the array's end. A vector is written only if the selection
// changes it: after most steps nothing changes, and memory is only read.
void SelectWords(const uint64_t* words, float* values, int64_t count) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> u;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t begin = 0; begin < count; begin += 64) {
    const uint64_t word = *words++;
    float* block = values + begin;
    const int64_t length = count - begin < 64 ? count - begin : 64;
    int64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      const uint64_t shifted = word >> i;
      uint8_t bits[8];  // LoadMaskBits may read eight bytes
      std::memcpy(bits, &shifted, sizeof bits);
      const auto mask = hn::LoadMaskBits(u, bits);
      const auto value = hn::BitCast(u, hn::LoadU(d, block + i));
      const auto dropped = hn::IfThenZeroElse(mask, value);
      if (hn::AllTrue(u, hn::Eq(dropped, hn::Zero(u)))) continue;
      hn::StoreU(hn::BitCast(d, hn::IfThenElseZero(mask, value)), d, block + i);
    }
    for (; i < length; ++i) {
      if ((word >> i & 1) == 0) block[i] = 0.0f;
    }
  }
}

}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {

HWY_EXPORT(SelectWords);

void select_by_mask(const BitMask& mask, std::span<float> values) {
  if (static_cast<int64_t>(values.size()) != mask.size()) {
    throw ShapeError(
        fmt::format("a mask of {} bits for an array of {}", mask.size(), values.size()));
  }
  if (use_reference_kernels()) {
    for (int64_t i = 0; i < mask.size(); ++i) {
      if (!mask.test(i)) values[static_cast<size_t>(i)] = 0.0f;
    }
    return;
  }
  constexpr int64_t kGrain = 1 << 16;  // a multiple of 64: words are not shared
  parallel_for(mask.size(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SelectWords)
    (mask.words().data() + begin / 64, values.data() + begin, end - begin);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
