// One sum after the other, vectors along the row; the sum itself stays in the first-level cache. A
// sum is one thread's, and its terms have one order.
#include "lacuna/framework/kernels/rowwise/weighted_rows.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/weighted_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void add_weighted_row(float weight, const float* row, float* sum, int64_t count) {
  const Vector factor = constant(weight);
  map([=](Vector s, Vector v) HWY_ATTR { return hn::MulAdd(factor, v, s); }, count, sum, sum, row);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(add_weighted_row);

void add_weighted_row_reference(float weight, const float* row, float* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += weight * row[i];
}

}  // namespace

void sum_weighted_rows(const WeightedRows& p, const float* table, Accumulate accumulate,
                       float* sum) {
  constexpr int64_t kSumsPerTask = 16;
  const auto add =
      use_reference_kernels() ? add_weighted_row_reference : HWY_DYNAMIC_DISPATCH(add_weighted_row);
  parallel_for(p.sums, kSumsPerTask, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      float* into = sum + i * p.features;
      if (accumulate == Accumulate::No) std::fill_n(into, p.features, 0.0f);
      for (int64_t t = p.begin[i]; t < p.begin[i + 1]; ++t) {
        add(p.weights[t], table + p.rows[t] * p.features, into, p.features);
      }
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
