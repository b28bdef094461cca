// Vectorized optimizer updates, compiled once per instruction set.
//
// Each rule loads one vector of every array, computes, and stores, in a single pass that is bound
// by memory (Adam moves 28 bytes per element). Adam's bias correction multiplies by 1 / √(1 −
// beta2^t), rounded from double, where PyTorch divides. This differs by at most one rounding and
// saves one of two long divisions. Division and square root are the exact instructions.
//
// The last, partial vector is computed by the same instructions on a padded copy. So an
// element's value does not depend on its place, and compressed and dense layouts train to the
// same bits.
#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/optimizer_update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/adam_rule.inc"
#include "lacuna/framework/kernels/pointwise/optimizer_update_reference.hpp"

#ifndef LACUNA_OPTIMIZER_UPDATE_ARRAYS
#define LACUNA_OPTIMIZER_UPDATE_ARRAYS
namespace lacuna {

// The arrays of one update; arrays that a rule does not use are null.
struct UpdateArrays {
  float* values;
  const float* gradient;
  float* first;
  float* second;
};

}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;

struct SgdRule {
  static constexpr bool kUsesFirst = false, kUsesSecond = false;
  const SgdCoefficients& c;

  HWY_INLINE void operator()(const UpdateArrays& x, size_t i) const {
    const FloatTag d;
    const auto w = hn::LoadU(d, x.values + i);
    const auto step = hn::MulAdd(hn::Set(d, c.weight_decay), w, hn::LoadU(d, x.gradient + i));
    hn::StoreU(hn::NegMulAdd(hn::Set(d, c.learning_rate), step, w), d, x.values + i);
  }
};

template <bool kNesterov>
struct MomentumRule {
  static constexpr bool kUsesFirst = true, kUsesSecond = false;
  const SgdCoefficients& c;

  HWY_INLINE void operator()(const UpdateArrays& x, size_t i) const {
    const FloatTag d;
    const auto momentum = hn::Set(d, c.momentum);
    const auto w = hn::LoadU(d, x.values + i);
    const auto g = hn::MulAdd(hn::Set(d, c.weight_decay), w, hn::LoadU(d, x.gradient + i));
    const auto scaled = hn::Mul(hn::Set(d, c.gradient_scale), g);
    const auto buffer = hn::MulAdd(momentum, hn::LoadU(d, x.first + i), scaled);
    hn::StoreU(buffer, d, x.first + i);
    const auto step = kNesterov ? hn::MulAdd(momentum, buffer, g) : buffer;
    hn::StoreU(hn::NegMulAdd(hn::Set(d, c.learning_rate), step, w), d, x.values + i);
  }
};

struct AdamRule {
  static constexpr bool kUsesFirst = true, kUsesSecond = true;
  const AdamCoefficients& c;

  HWY_INLINE void operator()(const UpdateArrays& x, size_t i) const {
    const FloatTag d;
    adam_vector(d, c, hn::Set(d, c.step_size), hn::Set(d, c.root_scale), x.values + i,
                x.gradient + i, x.first + i, x.second + i);
  }
};

// Applies the rule to elements [begin, end).
template <class Rule>
HWY_INLINE void run_rule(const Rule& rule, const UpdateArrays& x, size_t begin, size_t end) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = begin;
  for (; i + lanes <= end; i += lanes) rule(x, i);
  if (i == end) return;

  HWY_ALIGN float padded[4][hn::MaxLanes(FloatTag())] = {};
  const size_t rest = end - i;
  for (size_t k = 0; k < rest; ++k) {
    padded[0][k] = x.values[i + k];
    padded[1][k] = x.gradient[i + k];
    if constexpr (Rule::kUsesFirst) padded[2][k] = x.first[i + k];
    if constexpr (Rule::kUsesSecond) padded[3][k] = x.second[i + k];
  }
  rule({padded[0], padded[1], padded[2], padded[3]}, 0);
  for (size_t k = 0; k < rest; ++k) {
    x.values[i + k] = padded[0][k];
    if constexpr (Rule::kUsesFirst) x.first[i + k] = padded[2][k];
    if constexpr (Rule::kUsesSecond) x.second[i + k] = padded[3][k];
  }
}

void sgd_range(const SgdCoefficients& c, const UpdateArrays& x, size_t begin, size_t end) {
  if (x.first == nullptr) {
    run_rule(SgdRule{c}, x, begin, end);
  } else if (c.is_nesterov) {
    run_rule(MomentumRule<true>{c}, x, begin, end);
  } else {
    run_rule(MomentumRule<false>{c}, x, begin, end);
  }
}

void adam_range(const AdamCoefficients& c, const UpdateArrays& x, size_t begin, size_t end) {
  run_rule(AdamRule{c}, x, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace lacuna
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(sgd_range);
HWY_EXPORT(adam_range);

// 64 KiB per array: the parts of four arrays fit the L2 cache of one core.

// Elements [begin, end) of an array that a rule may not use.
template <class T>
std::span<T> part(T* array, size_t begin, size_t end) {
  return array == nullptr ? std::span<T>() : std::span<T>(array + begin, end - begin);
}

void sgd_range_reference(const SgdCoefficients& c, const UpdateArrays& x, size_t begin,
                         size_t end) {
  sgd_update_reference<float>(c, part(x.values, begin, end), part(x.gradient, begin, end),
                              part(x.first, begin, end));
}

void adam_range_reference(const AdamCoefficients& c, const UpdateArrays& x, size_t begin,
                          size_t end) {
  adam_update_reference<float>(c, part(x.values, begin, end), part(x.gradient, begin, end),
                               part(x.first, begin, end), part(x.second, begin, end));
}

}  // namespace

// The references also run in parallel_for, whose blocks flush denormals. Without it, decaying
// values would end as denormals for the set `reference`, and as zero for every other.

void sgd_update(const SgdCoefficients& coefficients, std::span<float> values,
                std::span<const float> gradient, std::span<float> buffer) {
  auto* const run =
      use_reference_kernels() ? &sgd_range_reference : HWY_DYNAMIC_DISPATCH(sgd_range);
  const UpdateArrays arrays{values.data(), gradient.data(), buffer.data(), nullptr};
  parallel_for(static_cast<int64_t>(values.size()), kElementsPerTask,
               [&](int64_t begin, int64_t end) {
                 run(coefficients, arrays, static_cast<size_t>(begin), static_cast<size_t>(end));
               });
}

void adam_update(const AdamCoefficients& coefficients, std::span<float> values,
                 std::span<const float> gradient, std::span<float> exp_avg,
                 std::span<float> exp_avg_sq) {
  auto* const run =
      use_reference_kernels() ? &adam_range_reference : HWY_DYNAMIC_DISPATCH(adam_range);
  const UpdateArrays arrays{values.data(), gradient.data(), exp_avg.data(), exp_avg_sq.data()};
  parallel_for(static_cast<int64_t>(values.size()), kElementsPerTask,
               [&](int64_t begin, int64_t end) {
                 run(coefficients, arrays, static_cast<size_t>(begin), static_cast<size_t>(end));
               });
}

bool keeps_zeros(const SgdCoefficients& c) {
  return std::isfinite(c.learning_rate) && std::isfinite(c.weight_decay) &&
         std::isfinite(c.momentum) && std::isfinite(c.gradient_scale);
}

bool keeps_zeros(const AdamCoefficients& c) {
  return std::isfinite(c.retain) && std::isfinite(c.l2) && std::isfinite(c.beta1) &&
         std::isfinite(c.one_minus_beta1) && std::isfinite(c.beta2) &&
         std::isfinite(c.one_minus_beta2) && std::isfinite(c.step_size) &&
         std::isfinite(c.root_scale) && c.eps > 0.0f;
}

double sum_of_squares(std::span<const float> values) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<double> partial(
      static_cast<size_t>((count + kElementsPerTask - 1) / kElementsPerTask));
  parallel_for(count, kElementsPerTask, [&](int64_t begin, int64_t end) {
    // Eight sums hide the latency of an addition and let the compiler use vectors.
    std::array<double, 8> sums{};
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
      for (size_t lane = 0; lane < 8; ++lane) {
        const double value = values[static_cast<size_t>(i) + lane];
        sums[lane] += value * value;
      }
    }
    for (; i < end; ++i) {
      const double value = values[static_cast<size_t>(i)];
      sums[0] += value * value;
    }
    partial[static_cast<size_t>(begin / kElementsPerTask)] =
        std::accumulate(sums.begin(), sums.end(), 0.0);
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

void scale(float factor, std::span<float> values) {
  parallel_for(static_cast<int64_t>(values.size()), kElementsPerTask,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] *= factor;
               });
}

}  // namespace lacuna
#endif
