// Adam's update of weights with ages, compiled once per instruction set.
//
// One pass over memory, as in optimizer_update.cpp. Most vectors hold no recently grown weight.
// They use the parameter's factors, and ages cost one comparison. The factors of other vectors are
// gathered from tables (for root scales 69 KB at beta2 = 0.999, in the L2 cache), which the caller
// computes in double precision, so that they are equal on all instruction sets. If a vector has
// lanes of both kinds, all lanes use the same instructions.
#include "lacuna/framework/kernels/pointwise/aged_adam.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/aged_adam.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/adam_rule.inc"
#include "lacuna/framework/kernels/pointwise/aged_adam_reference.hpp"

#ifndef LACUNA_AGED_ADAM_ARRAYS
#define LACUNA_AGED_ADAM_ARRAYS
namespace lacuna {

struct AgedAdamArrays {
  float* values;
  const float* gradient;
  float* first;
  float* second;
  uint16_t* ages;
};

}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One vector of elements, from i on.
HWY_INLINE void aged_adam_vector(const AdamCoefficients& c, const AgedFactors& f,
                                 const AgedAdamArrays& x, size_t i) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> of_index;
  const hn::Rebind<uint16_t, decltype(d)> of_age;
  const auto most = static_cast<int32_t>(f.step_scales.size());
  const auto counted =
      hn::Add(hn::PromoteTo(of_index, hn::LoadU(of_age, x.ages + i)), hn::Set(of_index, 1));
  const auto age = hn::Min(counted, hn::Set(of_index, most));
  hn::StoreU(hn::DemoteTo(of_age, age), of_age, x.ages + i);

  auto step_size = hn::Set(d, c.step_size), root_scale = hn::Set(d, c.root_scale);
  const auto is_young = hn::Lt(age, hn::Set(of_index, f.shared_from));
  if (HWY_UNLIKELY(!hn::AllFalse(of_index, is_young))) {
    const auto index = hn::Min(age, hn::Set(of_index, most - 1));
    const auto young = hn::RebindMask(d, is_young);
    const auto scale = hn::GatherIndex(d, f.step_scales.data(), index);
    step_size = hn::IfThenElse(young, hn::Mul(hn::Set(d, f.step), scale), step_size);
    if (!f.root_scales.empty()) {
      root_scale =
          hn::IfThenElse(young, hn::GatherIndex(d, f.root_scales.data(), index), root_scale);
    }
  }
  adam_vector(d, c, step_size, root_scale, x.values + i, x.gradient + i, x.first + i, x.second + i);
}

void aged_adam_range(const AdamCoefficients& c, const AgedFactors& f, const AgedAdamArrays& x,
                     size_t begin, size_t end) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = begin;
  for (; i + lanes <= end; i += lanes) aged_adam_vector(c, f, x, i);
  if (i == end) return;

  HWY_ALIGN float padded[4][hn::MaxLanes(hn::ScalableTag<float>())] = {};
  HWY_ALIGN uint16_t ages[hn::MaxLanes(hn::ScalableTag<float>())] = {};
  const size_t rest = end - i;
  for (size_t k = 0; k < rest; ++k) {
    padded[0][k] = x.values[i + k];
    padded[1][k] = x.gradient[i + k];
    padded[2][k] = x.first[i + k];
    padded[3][k] = x.second[i + k];
    ages[k] = x.ages[i + k];
  }
  aged_adam_vector(c, f, {padded[0], padded[1], padded[2], padded[3], ages}, 0);
  for (size_t k = 0; k < rest; ++k) {
    x.values[i + k] = padded[0][k];
    x.first[i + k] = padded[2][k];
    x.second[i + k] = padded[3][k];
    x.ages[i + k] = ages[k];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lacuna
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(aged_adam_range);

// The same as in adam_update.
constexpr int64_t kAgedGrain = 1 << 14;

void aged_adam_range_reference(const AdamCoefficients& c, const AgedFactors& f,
                               const AgedAdamArrays& x, size_t begin, size_t end) {
  const size_t size = end - begin;
  aged_adam_update_reference<float>(c, f, {x.values + begin, size}, {x.gradient + begin, size},
                                    {x.first + begin, size}, {x.second + begin, size},
                                    {x.ages + begin, size});
}

}  // namespace

void aged_adam_update(const AdamCoefficients& coefficients, const AgedFactors& factors,
                      std::span<float> values, std::span<const float> gradient,
                      std::span<float> exp_avg, std::span<float> exp_avg_sq,
                      std::span<uint16_t> ages) {
  auto* const run =
      use_reference_kernels() ? &aged_adam_range_reference : HWY_DYNAMIC_DISPATCH(aged_adam_range);
  const AgedAdamArrays arrays{values.data(), gradient.data(), exp_avg.data(), exp_avg_sq.data(),
                              ages.data()};
  parallel_for(static_cast<int64_t>(values.size()), kAgedGrain, [&](int64_t begin, int64_t end) {
    run(coefficients, factors, arrays, static_cast<size_t>(begin), static_cast<size_t>(end));
  });
}

}  // namespace lacuna
#endif
