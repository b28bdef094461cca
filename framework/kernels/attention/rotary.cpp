// Vectors cover the pairs of a row or, in slabs, the positions of the examples for a pair. Bound by
// memory.
#include "lacuna/framework/kernels/attention/rotary.hpp"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/attention/rotary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void turn_range(float sign, const float* c, const float* s, const float* x0, const float* x1,
                float* y0, float* y1, int64_t count) {
  const Vector way = constant(sign);
  const auto first = [=](Vector a, Vector b, Vector cosine, Vector sine) HWY_ATTR {
    return hn::Sub(hn::Mul(a, cosine), hn::Mul(b, hn::Mul(sine, way)));
  };
  const auto second = [=](Vector a, Vector b, Vector cosine, Vector sine) HWY_ATTR {
    return hn::Add(hn::Mul(b, cosine), hn::Mul(a, hn::Mul(sine, way)));
  };
  map(first, count, y0, x0, x1, c, s);
  map(second, count, y1, x0, x1, c, s);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(turn_range);

void turn_reference(float sign, const float* c, const float* s, const float* x0, const float* x1,
                    float* y0, float* y1, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y0[i] = x0[i] * c[i] - x1[i] * (s[i] * sign);
    y1[i] = x1[i] * c[i] + x0[i] * (s[i] * sign);
  }
}

constexpr int64_t kTask = 1 << 13;

// The tables of cosines and sines, one value for each pair at each position.
struct Tables {
  Tables(const Tensor& table) : c(table.data()), s(c + table.numel() / 2) {}
  const float* c;
  const float* s;
};

}  // namespace

Tensor rotary_table(int64_t length, int64_t head_features, double base, Order order,
                    int64_t first) {
  const int64_t pairs = head_features / 2;
  const bool by_pair = order == Order::BatchSlabs;
  Tensor table = Tensor::empty(by_pair ? Shape{2, pairs, length} : Shape{2, length, pairs});
  float* cosines = table.mutable_data();
  float* sines = cosines + pairs * length;
  parallel_for(pairs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double frequency =
          std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_features));
      for (int64_t t = 0; t < length; ++t) {
        const double angle = static_cast<double>(first + t) * frequency;
        const int64_t at = by_pair ? i * length + t : t * pairs + i;
        cosines[at] = static_cast<float>(std::cos(angle));
        sines[at] = static_cast<float>(std::sin(angle));
      }
    }
  });
  return table;
}

void rotate(const RotaryShape& shape, Rotation rotation, const Tensor& table, const Tensor& x,
            Tensor& y) {
  const auto turn = use_reference_kernels() ? turn_reference : HWY_DYNAMIC_DISPATCH(turn_range);
  const float sign = rotation == Rotation::Forward ? 1.0f : -1.0f;
  const int64_t rows = x.shape().batch(), features = x.shape().features();
  const int64_t d = shape.head_features, pairs = d / 2, turned = shape.heads * d;
  const Tables tables(table);
  const float* from = x.data(x.order());
  float* to = y.mutable_data(x.order());
  if (x.order() == Order::RowMajor) {
    parallel_for(rows, std::max<int64_t>(1, kTask / features), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* in = from + r * features;
        float* out = to + r * features;
        const int64_t angles = r % shape.length * pairs;
        for (int64_t c = 0; c < turned; c += d) {
          turn(sign, tables.c + angles, tables.s + angles, in + c, in + c + pairs, out + c,
               out + c + pairs, pairs);
        }
        std::copy(in + turned, in + features, out + turned);
      }
    });
    return;
  }
  parallel_blocks((rows + kSlabWidth - 1) / kSlabWidth, [&](int64_t slab) {
    const float* in = from + slab * features * kSlabWidth;
    float* out = to + slab * features * kSlabWidth;
    std::copy(in, in + features * kSlabWidth, out);  // other columns, and the padding
    const int64_t lanes = std::min(kSlabWidth, rows - slab * kSlabWidth);
    for (int64_t lane = 0; lane < lanes;) {
      const int64_t position = (slab * kSlabWidth + lane) % shape.length;
      const int64_t count = std::min(lanes - lane, shape.length - position);
      for (int64_t c = 0; c < turned; c += d) {
        for (int64_t i = 0; i < pairs; ++i) {
          const int64_t at0 = (c + i) * kSlabWidth + lane, at1 = at0 + pairs * kSlabWidth;
          const int64_t angles = i * shape.length + position;
          turn(sign, tables.c + angles, tables.s + angles, in + at0, in + at1, out + at0, out + at1,
               count);
        }
      }
      lane += count;
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
