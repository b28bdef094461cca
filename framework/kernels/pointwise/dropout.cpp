// Words are drawn into a buffer of 256 on the stack (rows: 64 blocks of four columns; slabs: four
// columns of 64 examples), then applied by vectors. The time goes into Philox. Tasks of about 4096
// elements.
#include "lacuna/framework/kernels/pointwise/dropout.hpp"

#include <algorithm>
#include <array>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/dropout_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void apply_dropout_range(const uint32_t* words, uint32_t threshold, float factor, const float* x,
                         float* y, int64_t count) {
  const hn::RebindToUnsigned<Floats> du;
  const hn::RebindToSigned<Floats> di;
  const Vector kept = constant(factor);
  const auto limit = hn::Set(di, static_cast<int32_t>(threshold));
  const int64_t lanes = lane_count();
  const Floats d;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + i)));
    const auto dropped = hn::RebindMask(d, hn::Lt(value, limit));
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::IfThenZeroElse(dropped, kept)), d, y + i);
  }
  for (; i < count; ++i) y[i] = x[i] * (words[i] >> 8 < threshold ? 0.0f : factor);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(apply_dropout_range);

constexpr int64_t kBuffer = 256, kTask = 1 << 12;

class Dropout {
 public:
  Dropout(const DropoutMask& mask, int64_t features)
      : rng_(mask.rng),
        features_(features),
        blocks_((features + 3) / 4),
        threshold_(reference::dropout_threshold(mask.p)),
        first_row_(mask.first_row),
        factor_(static_cast<float>(1.0 / (1.0 - mask.p))),
        apply_(use_reference_kernels() ? reference::apply_dropout<float>
                                       : HWY_DYNAMIC_DISPATCH(apply_dropout_range)) {}

  void row(int64_t row, const float* x, float* y) const {
    std::array<uint32_t, kBuffer> words;
    for (int64_t begin = 0; begin < features_; begin += kBuffer) {
      const int64_t count = std::min(kBuffer, features_ - begin);
      for (int64_t c = 0; c < count; c += 4) {
        const auto four = block(row, begin + c);
        std::ranges::copy(four, words.begin() + c);
      }
      apply_(words.data(), threshold_, factor_, x + begin, y + begin, count);
    }
  }

  // Examples 64 · slab …, padding included: it is treated like examples of its own.
  void slab(int64_t slab, const float* x, float* y) const {
    static_assert(kBuffer == 4 * kSlabWidth);
    std::array<uint32_t, kBuffer> words;
    for (int64_t begin = 0; begin < features_; begin += 4) {
      const int64_t columns = std::min<int64_t>(4, features_ - begin);
      for (int64_t lane = 0; lane < kSlabWidth; ++lane) {
        const auto four = block(slab * kSlabWidth + lane, begin);
        for (size_t c = 0; c < 4; ++c) words[c * kSlabWidth + static_cast<size_t>(lane)] = four[c];
      }
      const int64_t offset = (slab * features_ + begin) * kSlabWidth;
      apply_(words.data(), threshold_, factor_, x + offset, y + offset, columns * kSlabWidth);
    }
  }

 private:
  std::array<uint32_t, 4> block(int64_t row, int64_t column) const {
    return rng_.block(static_cast<uint64_t>((first_row_ + row) * blocks_ + column / 4));
  }

  const CounterRng& rng_;
  int64_t features_, blocks_;
  uint32_t threshold_;
  int64_t first_row_;
  float factor_;
  decltype(&reference::apply_dropout<float>) apply_;
};

}  // namespace

void dropout(const DropoutMask& mask, const Tensor& x, Tensor& y) {
  const int64_t rows = x.shape().batch(), features = x.shape().features();
  const Dropout dropout(mask, features);
  const Order order = x.order();
  const float* in = x.data(order);
  float* out = y.mutable_data(order);
  if (order == Order::BatchSlabs) {
    parallel_blocks((rows + kSlabWidth - 1) / kSlabWidth,
                    [&](int64_t slab) { dropout.slab(slab, in, out); });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kTask / std::max<int64_t>(1, features));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) dropout.row(r, in + r * features, out + r * features);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
