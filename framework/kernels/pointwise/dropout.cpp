// Words are drawn into a buffer of 256 on the stack and applied by vectors. For the backward pass,
// one bit per element records whether it was kept. Rows whose length is a multiple of four are
// consecutive in the draws as in memory, so they are treated as one long row. Tasks have about 4096
// elements.
#include "lacuna/framework/kernels/pointwise/dropout.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/dropout_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/philox.inc"
#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

using FloatMask = hn::Mask<Floats>;

// For 64 elements: a vector's bits, beginning at `at`. Just the bytes that are stored are read: a
// longer load would wait until they are in the cache.
HWY_INLINE uint64_t bits_of(FloatMask mask, int64_t at) {
  using Bits = std::conditional_t<(hn::MaxLanes(Floats()) > 8), uint16_t, uint8_t>;
  std::array<uint8_t, 8> bytes;
  hn::StoreMaskBits(Floats(), mask, bytes.data());
  Bits bits = 0;
  std::memcpy(&bits, bytes.data(), sizeof(bits));
  return uint64_t{bits} << at;
}

HWY_INLINE FloatMask mask_of(uint64_t bits, int64_t at) {
  std::array<uint8_t, 8> bytes;
  bits >>= at;
  std::memcpy(bytes.data(), &bits, sizeof(bits));
  return hn::LoadMaskBits(Floats(), bytes.data());
}

void drop(const uint32_t* words, uint32_t threshold, float factor, const float* x, float* y,
          uint64_t* bits, int64_t count) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const hn::RebindToSigned<Floats> di;
  const Vector kept = constant(factor);
  const auto limit = hn::Set(di, static_cast<int32_t>(threshold));
  const int64_t lanes = lane_count();
  for (int64_t begin = 0; begin < count; begin += 64) {
    const int64_t end = std::min<int64_t>(begin + 64, count);
    uint64_t all = 0;
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const auto value = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + i)));
      const auto dropped = hn::RebindMask(d, hn::Lt(value, limit));
      hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::IfThenZeroElse(dropped, kept)), d, y + i);
      all |= bits_of(hn::Not(dropped), i - begin);
    }
    for (; i < end; ++i) {
      const bool keeps = words[i] >> 8 >= threshold;
      y[i] = x[i] * (keeps ? factor : 0.0f);
      all |= uint64_t{keeps} << (i - begin);
    }
    bits[begin / 64] = all;
  }
}

void drop_again(const uint64_t* bits, float factor, const float* x, float* y, int64_t count) {
  const Floats d;
  const Vector kept = constant(factor);
  const int64_t lanes = lane_count();
  for (int64_t begin = 0; begin < count; begin += 64) {
    const int64_t end = std::min<int64_t>(begin + 64, count);
    const uint64_t all = bits[begin / 64];
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const Vector by = hn::IfThenElseZero(mask_of(all, i - begin), kept);
      hn::StoreU(hn::Mul(hn::LoadU(d, x + i), by), d, y + i);
    }
    for (; i < end; ++i) y[i] = x[i] * ((all >> (i - begin) & 1) != 0 ? factor : 0.0f);
  }
}

// The words of blocks first, first + 1, … in order; up to 15 blocks more than `count`.
void draw_blocks(const CounterRng& rng, uint64_t first, int64_t count, uint32_t* words) {
  const PhiloxLanes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for_each_philox(rng, first, count,
                  [=](int64_t i, const PhiloxWords& a, const PhiloxWords& b) HWY_ATTR {
                    store_philox_blocks(a, words + 4 * i);
                    store_philox_blocks(b, words + 4 * (i + lanes));
                  });
}

// words[64 c + lane] = word c of block first + lane · stride, for 64 lanes.
void draw_lanes(const CounterRng& rng, uint64_t first, uint64_t stride, uint32_t* words) {
  const PhiloxLanes d;
  for_each_philox(rng, hn::Add(philox_multiples(stride), hn::Set(d, first)),
                  hn::Set(d, stride * hn::MaxLanes(d)), 64,
                  [=](int64_t i, const PhiloxWords& a, const PhiloxWords& b) HWY_ATTR {
                    store_low_halves(a.c0, b.c0, words + i);
                    store_low_halves(a.c1, b.c1, words + 64 + i);
                    store_low_halves(a.c2, b.c2, words + 128 + i);
                    store_low_halves(a.c3, b.c3, words + 192 + i);
                  });
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(drop);
HWY_EXPORT(drop_again);
HWY_EXPORT(draw_blocks);
HWY_EXPORT(draw_lanes);

constexpr int64_t kBuffer = 256, kDropoutTask = 1 << 12;

// A unit of work: `count` consecutive elements, whose bits begin at `bit`, with either the blocks
// from `block` on or, in slabs, the blocks of 64 examples.
struct Rows {
  int64_t rows = 0, features = 0, words = 0;  // words of bits per row

  static Rows of(const Shape& shape) {
    Rows r{.rows = shape.batch(), .features = shape.features()};
    if (r.features % 4 == 0) r = {.rows = 1, .features = r.rows * r.features};
    r.words = (r.features + 63) / 64;
    return r;
  }

  // Calls function(row, first column, number of columns) for at most `kDropoutTask` elements of a
  // row, beginning at multiples of 256.
  template <class Function>
  void for_each_part(Function function) const {
    const int64_t parts = (features + kDropoutTask - 1) / kDropoutTask;
    const int64_t grain = rows_per_task(features, kDropoutTask);
    parallel_for(rows * parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % parts * kDropoutTask;
        function(i / parts, column, std::min(kDropoutTask, features - column));
      }
    });
  }
};

int64_t slabs_of(const Shape& shape) { return (shape.batch() + kSlabWidth - 1) / kSlabWidth; }

float factor_of(const DropoutMask& mask) { return static_cast<float>(1.0 / (1.0 - mask.p)); }

class Dropout {
 public:
  Dropout(const DropoutMask& mask, int64_t blocks)
      : rng_(mask.rng),
        first_(static_cast<uint64_t>(mask.first_row * blocks)),
        threshold_(reference::dropout_threshold(mask.p)),
        factor_(factor_of(mask)) {}

  // `block` is counted from the first block of the first row.
  void row(int64_t block, const float* x, float* y, uint64_t* bits, int64_t count) const {
    alignas(64) std::array<uint32_t, kBuffer> words;
    for (int64_t begin = 0; begin < count; begin += kBuffer) {
      const int64_t some = std::min(kBuffer, count - begin);
      draw(first_ + static_cast<uint64_t>(block + begin / 4), (some + 3) / 4, words.data());
      apply(words.data(), x + begin, y + begin, bits + begin / 64, some);
    }
  }

  // Examples from 64 · slab on. Padding is treated like further examples.
  void slab(int64_t slab, int64_t blocks, int64_t features, const float* x, float* y,
            uint64_t* bits) const {
    static_assert(kBuffer == 4 * kSlabWidth);
    alignas(64) std::array<uint32_t, kBuffer> words;
    for (int64_t begin = 0; begin < features; begin += 4) {
      const int64_t columns = std::min<int64_t>(4, features - begin);
      lanes(first_ + static_cast<uint64_t>(slab * kSlabWidth * blocks + begin / 4),
            static_cast<uint64_t>(blocks), words.data());
      const int64_t offset = slab * features + begin;
      apply(words.data(), x + offset * kSlabWidth, y + offset * kSlabWidth, bits + offset,
            columns * kSlabWidth);
    }
  }

 private:
  void draw(uint64_t first, int64_t count, uint32_t* words) const {
    if (!use_reference_kernels())
      return HWY_DYNAMIC_DISPATCH(draw_blocks)(rng_, first, count, words);
    for (int64_t i = 0; i < count; ++i) {
      std::ranges::copy(rng_.block(first + static_cast<uint64_t>(i)), words + 4 * i);
    }
  }

  void lanes(uint64_t first, uint64_t stride, uint32_t* words) const {
    if (!use_reference_kernels())
      return HWY_DYNAMIC_DISPATCH(draw_lanes)(rng_, first, stride, words);
    for (uint64_t lane = 0; lane < kSlabWidth; ++lane) {
      const auto four = rng_.block(first + lane * stride);
      for (size_t c = 0; c < 4; ++c) words[c * kSlabWidth + lane] = four[c];
    }
  }

  void apply(const uint32_t* words, const float* x, float* y, uint64_t* bits, int64_t count) const {
    if (!use_reference_kernels()) {
      return HWY_DYNAMIC_DISPATCH(drop)(words, threshold_, factor_, x, y, bits, count);
    }
    reference::apply_dropout(words, threshold_, factor_, x, y, count);
    reference::kept_bits(words, threshold_, bits, count);
  }

  const CounterRng& rng_;
  uint64_t first_;
  uint32_t threshold_;
  float factor_;
};

void apply_bits(const uint64_t* bits, float factor, const float* x, float* y, int64_t count) {
  if (!use_reference_kernels()) {
    return HWY_DYNAMIC_DISPATCH(drop_again)(bits, factor, x, y, count);
  }
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] * ((bits[i / 64] >> (i % 64) & 1) != 0 ? factor : 0.0f);
  }
}

}  // namespace

KeptBits dropout(const DropoutMask& mask, const Tensor& x, Tensor& y) {
  const int64_t features = x.shape().features(), blocks = (features + 3) / 4;
  const Dropout dropout(mask, blocks);
  const Order order = x.order();
  const float* in = x.data(order);
  float* out = y.mutable_data(order);
  if (order == Order::BatchSlabs) {
    KeptBits bits(static_cast<size_t>(slabs_of(x.shape()) * features));
    parallel_blocks(slabs_of(x.shape()), [&](int64_t slab) {
      dropout.slab(slab, blocks, features, in, out, bits.data());
    });
    return bits;
  }
  const Rows rows = Rows::of(x.shape());
  KeptBits bits(static_cast<size_t>(rows.rows * rows.words));
  rows.for_each_part([&](int64_t row, int64_t column, int64_t count) {
    const int64_t at = row * rows.features + column;
    dropout.row(row * blocks + column / 4, in + at, out + at,
                bits.data() + row * rows.words + column / 64, count);
  });
  return bits;
}

void dropout_again(const DropoutMask& mask, const KeptBits& bits, const Tensor& x, Tensor& y) {
  const Order order = x.order();
  const float* in = x.data(order);
  float* out = y.mutable_data(order);
  const float factor = factor_of(mask);
  if (order == Order::BatchSlabs) {
    const int64_t of_slab = x.shape().features() * kSlabWidth;
    parallel_blocks(slabs_of(x.shape()), [&](int64_t slab) {
      apply_bits(bits.data() + slab * of_slab / 64, factor, in + slab * of_slab,
                 out + slab * of_slab, of_slab);
    });
    return;
  }
  const Rows rows = Rows::of(x.shape());
  rows.for_each_part([&](int64_t row, int64_t column, int64_t count) {
    const int64_t at = row * rows.features + column;
    apply_bits(bits.data() + row * rows.words + column / 64, factor, in + at, out + at, count);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
