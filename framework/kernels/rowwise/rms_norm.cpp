// Row by row, vectors along the row, which stays in the first-level cache between the passes.
// Tasks of about 8192 elements.
#include "lacuna/framework/kernels/rowwise/rms_norm.hpp"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/rowwise/rms_norm_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/rms_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void rms_norm_range(const NormShape& shape, double eps, const float* x, const float* weight,
                    float* y, float* inverse_root) {
  const int64_t n = shape.features;
  for (int64_t r = 0; r < shape.rows; ++r, x += n, y += n) {
    const double squares = sum_of([](Vector v) HWY_ATTR { return hn::Mul(v, v); }, n, x);
    inverse_root[r] = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(n) + eps));
    const Vector factor = constant(inverse_root[r]);
    map([=](Vector v, Vector w) HWY_ATTR { return hn::Mul(hn::Mul(v, factor), w); }, n, y, x,
        weight);
  }
}

void rms_norm_of_sum_range(const NormShape& shape, double eps, const float* x, const float* added,
                           const float* weight, float* sum, float* y, float* inverse_root) {
  const int64_t n = shape.features;
  for (int64_t r = 0; r < shape.rows; ++r, x += n, added += n, sum += n, y += n) {
    map([](Vector v, Vector a) HWY_ATTR { return hn::Add(v, a); }, n, sum, x, added);
    rms_norm_range({1, n}, eps, sum, weight, y, inverse_root + r);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(rms_norm_range);
HWY_EXPORT(rms_norm_of_sum_range);

void rms_norm_of_sum_reference(const NormShape& shape, double eps, const float* x,
                               const float* added, const float* weight, float* sum, float* y,
                               float* inverse_root) {
  for (int64_t i = 0; i < shape.rows * shape.features; ++i) sum[i] = x[i] + added[i];
  reference::rms_norm(shape, eps, sum, weight, y, inverse_root);
}

}  // namespace

void rms_norm(const NormShape& shape, double eps, const float* x, const float* weight, float* y,
              float* inverse_root) {
  const auto range =
      use_reference_kernels() ? reference::rms_norm<float> : HWY_DYNAMIC_DISPATCH(rms_norm_range);
  const int64_t n = shape.features;
  parallel_for(shape.rows, rows_per_task(n, kElementsPerRowTask), [&](int64_t begin, int64_t end) {
    range({end - begin, n}, eps, x + begin * n, weight, y + begin * n, inverse_root + begin);
  });
}

void rms_norm_of_sum(const NormShape& shape, double eps, const float* x, const float* added,
                     const float* weight, float* sum, float* y, float* inverse_root) {
  const auto range = use_reference_kernels() ? rms_norm_of_sum_reference
                                             : HWY_DYNAMIC_DISPATCH(rms_norm_of_sum_range);
  const int64_t n = shape.features;
  parallel_for(shape.rows, rows_per_task(n, kElementsPerRowTask), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * n;
    range({end - begin, n}, eps, x + offset, added + offset, weight, sum + offset, y + offset,
          inverse_root + begin);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
