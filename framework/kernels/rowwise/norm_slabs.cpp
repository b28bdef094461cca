// A slab is a task. Four vectors (or all of a slab's row where that is fewer) of examples go down
// the features together: each line of 64 floats is read as it lies. Sums run in float over 64
// features at a time, and over those sums: as exact as a sum along the row.
//
// The gradient reads a slab twice. The first pass also sums dy and dy n over the examples, four
// features' vectors reduced together: an array of products that is written and read again, and
// sums of dy feature by feature, took three times as long (AMD Zen 4, warm).
#include "lacuna/framework/kernels/rowwise/norm_slabs.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/norm_slabs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/slab.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

constexpr int kVectors = 4;

// The forward passes ask for what they are the first to read or write so many floats before. Asking
// for the next slab while one is in the first-level cache gained nothing (AMD Zen 4).
constexpr int64_t kAhead = 512;

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

// x itself, or x + added, which is then kept.
struct NormInput {
  const float* x;
  const float* added;  // null: nothing
  float* sum;
};

// sums[v] = Σ over the features of term(value), of the input's values: the first read of them.
template <class Term>
HWY_INLINE void sum_input(const Examples& e, const NormInput& input, Vector (&sums)[kVectors],
                          const Term& term) {
  const Floats d;
  if (input.added == nullptr) {
    return sum_features(e, sums, [&](int64_t at, int64_t, int) HWY_ATTR {
      return term(hn::LoadU(d, input.x + at));
    });
  }
  sum_features(e, sums, [&](int64_t at, int64_t, int) HWY_ATTR {
    __builtin_prefetch(input.x + at + kAhead, 0, 2);
    __builtin_prefetch(input.added + at + kAhead, 0, 2);
    __builtin_prefetch(input.sum + at + kAhead, 1, 2);
    const Vector value = hn::Add(hn::LoadU(d, input.x + at), hn::LoadU(d, input.added + at));
    hn::StoreU(value, d, input.sum + at);
    return term(value);
  });
}

void norm_examples(const Examples& e, double eps, const NormInput& input, const float* weight,
                   const float* bias, float* y, float* mean, float* inverse_deviation) {
  const Floats d;
  const Vector share = constant(1.0 / static_cast<double>(e.features));
  Vector center[kVectors], factor[kVectors];
  for (int v = 0; v < kVectors; ++v) center[v] = hn::Zero(d);
  const float* x = input.added == nullptr ? input.x : input.sum;
  if (mean != nullptr) {
    sum_input(e, input, center, [](Vector value) HWY_ATTR { return value; });
    for (int v = 0; v < kVectors; ++v) {
      center[v] = hn::Mul(center[v], share);
      hn::StoreU(center[v], d, mean + e.at(0, v));
    }
    sum_features(e, factor, [&](int64_t at, int64_t, int v) HWY_ATTR {
      const Vector difference = hn::Sub(hn::LoadU(d, x + at), center[v]);
      return hn::Mul(difference, difference);
    });
  } else {
    sum_input(e, input, factor, [](Vector value) HWY_ATTR { return hn::Mul(value, value); });
  }
  for (int v = 0; v < kVectors; ++v) {
    const Vector variance = hn::MulAdd(factor[v], share, constant(eps));
    factor[v] = hn::Div(constant(1.0), hn::Sqrt(variance));
    hn::StoreU(factor[v], d, inverse_deviation + e.at(0, v));
  }
  for (int64_t j = 0; j < e.features; ++j) {
    const Vector w = hn::Set(d, weight[j]), b = bias == nullptr ? hn::Zero(d) : hn::Set(d, bias[j]);
    for (int v = 0; v < kVectors; ++v) {
      __builtin_prefetch(y + e.at(j, v) + kAhead, 1, 2);
      const Vector centered = hn::Sub(hn::LoadU(d, x + e.at(j, v)), center[v]);
      hn::StoreU(hn::MulAdd(hn::Mul(centered, factor[v]), w, b), d, y + e.at(j, v));
    }
  }
}

// Vectors of examples whose gradient is computed at once: with fewer registers the sums of four
// would not stay in them.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kGradientVectors = 4;
#else
constexpr int kGradientVectors = 2;
#endif

// into[i] = the sum over the lanes of sums[i], or that is added.
HWY_INLINE void put_lane_sums(const Vector (&sums)[4], bool adds, float* into) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) into[i] = (adds ? into[i] : 0.0f) + hn::GetLane(sums[i]);
#else
  const auto quad = add_blocks(block_sums_of(sums[0], sums[1], sums[2], sums[3]));
  adds ? put<4, true>(quad, into) : put<4, false>(quad, into);
#endif
}
HWY_INLINE void put_lane_sum(Vector sum, bool adds, float* into) {
  *into = (adds ? *into : 0.0f) + hn::GetLane(hn::SumOfLanes(Floats(), sum));
}

// The gradient of kGradientVectors of examples: of them all, or of the first `count`.
template <bool kCentered, bool kWhole>
class ExamplesGradient {
 public:
  ExamplesGradient(const Examples& e, int64_t count, const NormGradient& g)
      : e_(e), count_(count), g_(g) {
    const Floats d;
    for (int v = 0; v < kN; ++v) {
      center_[v] = kCentered ? hn::LoadU(d, g.mean + e.at(0, v)) : hn::Zero(d);
      factor_[v] = hn::LoadU(d, g.inverse_deviation + e.at(0, v));
    }
  }

  HWY_INLINE void run() const {
    const Floats d;
    const Vector share = constant(1.0 / static_cast<double>(e_.features));
    Vector average[kN], projection[kN];
    sum(average, projection);
    for (int v = 0; v < kN; ++v) {
      average[v] = hn::Mul(average[v], share);
      projection[v] = hn::Mul(projection[v], share);
    }
    for (int64_t j = 0; j < e_.features; ++j) {
      const Vector w = hn::Set(d, g_.weight[j]);
      for (int v = 0; v < kN; ++v) {
        const int64_t at = e_.at(j, v);
        const Vector slope = hn::Mul(hn::LoadU(d, g_.dy + at), w);
        const Vector centered = kCentered ? hn::Sub(slope, average[v]) : slope;
        const Vector value =
            hn::Mul(factor_[v], hn::NegMulAdd(normalized(at, v), projection[v], centered));
        const bool adds = g_.added != nullptr;
        hn::StoreU(adds ? hn::Add(value, hn::LoadU(d, g_.added + at)) : value, d, g_.dx + at);
      }
    }
  }

 private:
  static constexpr int kN = kGradientVectors;

  HWY_INLINE Vector normalized(int64_t at, int v) const {
    return hn::Mul(hn::Sub(hn::LoadU(Floats(), g_.x + at), center_[v]), factor_[v]);
  }
  // Zero in the lanes of padding, whatever there is.
  HWY_INLINE Vector counted(int v, Vector value) const {
    if constexpr (kWhole) return value;
    const int64_t lanes = lane_count(), left = count_ - v * lanes;
    const auto n = static_cast<size_t>(left < 0 ? 0 : left > lanes ? lanes : left);
    return hn::IfThenElseZero(hn::FirstN(Floats(), n), value);
  }

  // The sums over the features of dy w and dy n w, and of each feature those over the examples.
  HWY_INLINE void sum(Vector (&average)[kN], Vector (&projection)[kN]) const {
    constexpr int64_t kChunk = 64;
    const Floats d;
    const bool adds = e_.first > 0;  // to those of the slab's examples before
    for (int v = 0; v < kN; ++v) average[v] = projection[v] = hn::Zero(d);
    for (int64_t begin = 0; begin < e_.features; begin += kChunk) {
      const int64_t end = begin + kChunk < e_.features ? begin + kChunk : e_.features;
      Vector part[kN], part_of_n[kN];
      for (int v = 0; v < kN; ++v) part[v] = part_of_n[v] = hn::Zero(d);
      int64_t j = begin;
      for (; j + 4 <= end; j += 4) {
        Vector products[4], totals[4];
        HWY_UNROLL(4)
        for (int i = 0; i < 4; ++i) add(j + i, part, part_of_n, products[i], totals[i]);
        put_lane_sums(products, adds, g_.products + j);
        if constexpr (kCentered) put_lane_sums(totals, adds, g_.totals + j);
      }
      for (; j < end; ++j) {
        Vector product, total;
        add(j, part, part_of_n, product, total);
        put_lane_sum(product, adds, g_.products + j);
        if constexpr (kCentered) put_lane_sum(total, adds, g_.totals + j);
      }
      for (int v = 0; v < kN; ++v) {
        average[v] = hn::Add(average[v], part[v]);
        projection[v] = hn::Add(projection[v], part_of_n[v]);
      }
    }
  }

  // Feature j: what it adds to the sums over the features, and the vectors' sums of dy n and dy.
  HWY_INLINE void add(int64_t j, Vector (&part)[kN], Vector (&part_of_n)[kN], Vector& product,
                      Vector& total) const {
    const Floats d;
    const Vector w = hn::Set(d, g_.weight[j]);
    HWY_UNROLL(4)
    for (int v = 0; v < kN; ++v) {
      const int64_t at = e_.at(j, v);
      const Vector dy = counted(v, hn::LoadU(d, g_.dy + at));
      const Vector slope = hn::Mul(dy, counted(v, normalized(at, v)));
      part_of_n[v] = hn::MulAdd(slope, w, part_of_n[v]);
      product = v == 0 ? slope : hn::Add(product, slope);
      if constexpr (!kCentered) continue;
      part[v] = hn::MulAdd(dy, w, part[v]);
      total = v == 0 ? dy : hn::Add(total, dy);
    }
  }

  const Examples e_;
  const int64_t count_;
  const NormGradient& g_;
  Vector center_[kN], factor_[kN];
};

void norm_slab(int64_t features, double eps, const float* x, const float* added,
               const float* weight, const float* bias, float* sum, float* y, float* mean,
               float* inverse_deviation) {
  const NormInput input{x, added, sum};
  for (int64_t lane = 0; lane < kSlabWidth; lane += kVectors * lane_count()) {
    norm_examples({features, lane}, eps, input, weight, bias, y, mean, inverse_deviation);
  }
}

template <bool kCentered>
HWY_INLINE void gradient_of_slab(int64_t features, int64_t examples, const NormGradient& g) {
  const int64_t at_once = kGradientVectors * lane_count();
  int64_t lane = 0;
  for (; lane + at_once <= examples; lane += at_once) {
    ExamplesGradient<kCentered, true>({features, lane}, at_once, g).run();
  }
  if (lane < examples) {
    ExamplesGradient<kCentered, false>({features, lane}, examples - lane, g).run();
  }
}

void norm_slab_gradient(int64_t features, int64_t examples, const NormGradient& g) {
  (g.mean == nullptr ? gradient_of_slab<false> : gradient_of_slab<true>)(features, examples, g);
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
  norm_slabs_of_sum(shape, eps, x, nullptr, weight, bias, nullptr, y, mean, inverse_deviation);
}

void norm_slabs_of_sum(const NormShape& shape, double eps, const float* x, const float* added,
                       const float* weight, const float* bias, float* sum, float* y, float* mean,
                       float* inverse_deviation) {
  const auto slab = HWY_DYNAMIC_DISPATCH(norm_slab);
  parallel_blocks(slab_count(shape.rows), [&](int64_t s) {
    const int64_t offset = s * shape.features * kSlabWidth, first = s * kSlabWidth;
    const auto at = [&](auto* array) { return array == nullptr ? nullptr : array + offset; };
    slab(shape.features, eps, x + offset, at(added), weight, bias, at(sum), y + offset,
         mean == nullptr ? nullptr : mean + first, inverse_deviation + first);
  });
  clear_padding(shape, y);
}

void norm_slabs_gradient(const NormShape& shape, const NormGradient& gradient) {
  static_assert(kNormRows == kSlabWidth);
  const auto slab = HWY_DYNAMIC_DISPATCH(norm_slab_gradient);
  parallel_blocks(slab_count(shape.rows), [&](int64_t s) {
    const int64_t offset = s * shape.features * kSlabWidth, first = s * kSlabWidth;
    NormGradient g = gradient;
    g.x += offset, g.dy += offset, g.dx += offset;
    g.inverse_deviation += first;
    g.products += s * shape.features;
    if (g.mean != nullptr) g.mean += first, g.totals += s * shape.features;
    if (g.added != nullptr) g.added += offset;
    slab(shape.features, std::min(kSlabWidth, shape.rows - first), g);
  });
  clear_padding(shape, gradient.dx);
}

}  // namespace lacuna
#endif  // HWY_ONCE
