// A slab is a task. Four vectors (or all of a slab's row where that is fewer) of examples go down
// the features together: each line of 64 floats is read as it lies. Sums run in float over 64
// features at a time, and over those sums: as exact as a sum along the row.
#include "lacuna/framework/kernels/rowwise/norm_slabs.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/norm_slabs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

constexpr int kVectors = 4;

// Some vectors of examples, from lane `first` of a slab on.
struct Examples {
  int64_t features;
  int64_t first;

  HWY_INLINE int64_t at(int64_t feature, int vector) const {
    return feature * kSlabWidth + first + vector * lane_count();
  }
};

// sums[v] = Σ over the features of term(place, feature, vector).
template <class Term>
HWY_INLINE void sum_features(const Examples& e, Vector (&sums)[kVectors], const Term& term) {
  constexpr int64_t kChunk = 64;
  const Floats d;
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  for (int64_t begin = 0; begin < e.features; begin += kChunk) {
    const int64_t end = begin + kChunk < e.features ? begin + kChunk : e.features;
    Vector part[kVectors];
    for (int v = 0; v < kVectors; ++v) part[v] = hn::Zero(d);
    for (int64_t j = begin; j < end; ++j) {
      for (int v = 0; v < kVectors; ++v) part[v] = hn::Add(part[v], term(e.at(j, v), j, v));
    }
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], part[v]);
  }
}

void norm_examples(const Examples& e, double eps, const float* x, const float* weight,
                   const float* bias, float* y, float* mean, float* inverse_deviation) {
  const Floats d;
  const Vector share = constant(1.0 / static_cast<double>(e.features));
  Vector center[kVectors], factor[kVectors];
  for (int v = 0; v < kVectors; ++v) center[v] = hn::Zero(d);
  if (mean != nullptr) {
    sum_features(e, center,
                 [&](int64_t at, int64_t, int) HWY_ATTR { return hn::LoadU(d, x + at); });
    for (int v = 0; v < kVectors; ++v) {
      center[v] = hn::Mul(center[v], share);
      hn::StoreU(center[v], d, mean + e.at(0, v));
    }
  }
  sum_features(e, factor, [&](int64_t at, int64_t, int v) HWY_ATTR {
    const Vector difference = hn::Sub(hn::LoadU(d, x + at), center[v]);
    return hn::Mul(difference, difference);
  });
  for (int v = 0; v < kVectors; ++v) {
    const Vector variance = hn::MulAdd(factor[v], share, constant(eps));
    factor[v] = hn::Div(constant(1.0), hn::Sqrt(variance));
    hn::StoreU(factor[v], d, inverse_deviation + e.at(0, v));
  }
  for (int64_t j = 0; j < e.features; ++j) {
    const Vector w = hn::Set(d, weight[j]), b = bias == nullptr ? hn::Zero(d) : hn::Set(d, bias[j]);
    for (int v = 0; v < kVectors; ++v) {
      const Vector centered = hn::Sub(hn::LoadU(d, x + e.at(j, v)), center[v]);
      hn::StoreU(hn::MulAdd(hn::Mul(centered, factor[v]), w, b), d, y + e.at(j, v));
    }
  }
}

void norm_examples_gradient(const Examples& e, const float* x, const float* weight,
                            const float* mean, const float* inverse_deviation, const float* dy,
                            float* dx, float* product) {
  const Floats d;
  const Vector share = constant(1.0 / static_cast<double>(e.features));
  Vector center[kVectors], factor[kVectors], average[kVectors], projection[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    center[v] = mean == nullptr ? hn::Zero(d) : hn::LoadU(d, mean + e.at(0, v));
    factor[v] = hn::LoadU(d, inverse_deviation + e.at(0, v));
    average[v] = hn::Zero(d);
  }
  const auto normalized = [&](int64_t at, int v) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::LoadU(d, x + at), center[v]), factor[v]);
  };
  sum_features(e, projection, [&](int64_t at, int64_t j, int v) HWY_ATTR {
    const Vector value = hn::Mul(hn::LoadU(d, dy + at), normalized(at, v));
    hn::StoreU(value, d, product + at);
    return hn::Mul(value, hn::Set(d, weight[j]));
  });
  if (mean != nullptr) {
    sum_features(e, average, [&](int64_t at, int64_t j, int) HWY_ATTR {
      return hn::Mul(hn::LoadU(d, dy + at), hn::Set(d, weight[j]));
    });
  }
  for (int v = 0; v < kVectors; ++v) {
    average[v] = hn::Mul(average[v], share);
    projection[v] = hn::Mul(projection[v], share);
  }
  for (int64_t j = 0; j < e.features; ++j) {
    const Vector w = hn::Set(d, weight[j]);
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = e.at(j, v);
      const Vector centered = hn::Sub(hn::Mul(hn::LoadU(d, dy + at), w), average[v]);
      const Vector value = hn::NegMulAdd(normalized(at, v), projection[v], centered);
      hn::StoreU(hn::Mul(factor[v], value), d, dx + at);
    }
  }
}

void norm_slab(int64_t features, double eps, const float* x, const float* weight, const float* bias,
               float* y, float* mean, float* inverse_deviation) {
  for (int64_t lane = 0; lane < kSlabWidth; lane += kVectors * lane_count()) {
    norm_examples({features, lane}, eps, x, weight, bias, y, mean, inverse_deviation);
  }
}

void norm_slab_gradient(int64_t features, const float* x, const float* weight, const float* mean,
                        const float* inverse_deviation, const float* dy, float* dx,
                        float* product) {
  for (int64_t lane = 0; lane < kSlabWidth; lane += kVectors * lane_count()) {
    norm_examples_gradient({features, lane}, x, weight, mean, inverse_deviation, dy, dx, product);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(norm_slab);
HWY_EXPORT(norm_slab_gradient);

// What follows the places of `rows` examples, where they are not whole slabs.
void clear_padding(const NormShape& shape, float* y) {
  const int64_t rest = shape.rows % kSlabWidth;
  if (rest == 0) return;
  float* slab = y + shape.rows / kSlabWidth * shape.features * kSlabWidth;
  for (int64_t j = 0; j < shape.features; ++j, slab += kSlabWidth) {
    std::fill(slab + rest, slab + kSlabWidth, 0.0f);
  }
}

}  // namespace

void norm_slabs(const NormShape& shape, double eps, const float* x, const float* weight,
                const float* bias, float* y, float* mean, float* inverse_deviation) {
  const auto slab = HWY_DYNAMIC_DISPATCH(norm_slab);
  parallel_blocks(slab_count(shape.rows), [&](int64_t s) {
    const int64_t offset = s * shape.features * kSlabWidth, first = s * kSlabWidth;
    slab(shape.features, eps, x + offset, weight, bias, y + offset,
         mean == nullptr ? nullptr : mean + first, inverse_deviation + first);
  });
  clear_padding(shape, y);
}

void norm_slabs_gradient(const NormShape& shape, const float* x, const float* weight,
                         const float* mean, const float* inverse_deviation, const float* dy,
                         float* dx, float* product) {
  const auto slab = HWY_DYNAMIC_DISPATCH(norm_slab_gradient);
  parallel_blocks(slab_count(shape.rows), [&](int64_t s) {
    const int64_t offset = s * shape.features * kSlabWidth, first = s * kSlabWidth;
    slab(shape.features, x + offset, weight, mean == nullptr ? nullptr : mean + first,
         inverse_deviation + first, dy + offset, dx + offset, product + offset);
  });
  clear_padding(shape, dx);
}

}  // namespace lacuna
#endif  // HWY_ONCE
