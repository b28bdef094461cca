// Row by row, vectors along the row: maximum, exponentials, sum, scaling. The row is in the
// first-level cache after the first pass. A NaN that the maximum passes over comes back through the
// sum of exponentials. Tasks of about 8192 elements.
#include "lacuna/framework/kernels/rowwise/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/rowwise/softmax_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/exponential.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void softmax_row(SoftmaxKind kind, int64_t count, const float* x, float* y) {
  const Vector largest = constant(max_of(count, x));
  const auto power = [=](Vector v) HWY_ATTR { return quick_exp_or_zero(hn::Sub(v, largest)); };
  if (kind == SoftmaxKind::Logarithm) {
    const Vector logarithm = constant(std::log(sum_of(power, count, x)));
    map([=](Vector v) HWY_ATTR { return hn::Sub(hn::Sub(v, largest), logarithm); }, count, y, x);
    return;
  }
  map(power, count, y, x);
  const double total = sum_of([](Vector v) HWY_ATTR { return v; }, count, y);
  const Vector factor = constant(1.0 / total);
  map([=](Vector v) HWY_ATTR { return hn::Mul(v, factor); }, count, y, y);
}

void softmax_gradient_row(SoftmaxKind kind, int64_t count, const float* y, const float* dy,
                          float* dx) {
  if (kind == SoftmaxKind::Logarithm) {
    const Vector total = constant(sum_of([](Vector v) HWY_ATTR { return v; }, count, dy));
    map([=](Vector v, Vector dv)
            HWY_ATTR { return hn::NegMulAdd(quick_exp_or_zero(v), total, dv); },
        count, dx, y, dy);
    return;
  }
  const auto product = [](Vector v, Vector dv) HWY_ATTR { return hn::Mul(v, dv); };
  const Vector total = constant(sum_of(product, count, y, dy));
  map([=](Vector v, Vector dv) HWY_ATTR { return hn::Mul(v, hn::Sub(dv, total)); }, count, dx, y,
      dy);
}

void softmax_range(SoftmaxKind kind, int64_t rows, int64_t features, const float* x, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += features, y += features) {
    softmax_row(kind, features, x, y);
  }
}

void softmax_gradient_range(SoftmaxKind kind, int64_t rows, int64_t features, const float* y,
                            const float* dy, float* dx) {
  for (int64_t r = 0; r < rows; ++r, y += features, dy += features, dx += features) {
    softmax_gradient_row(kind, features, y, dy, dx);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(softmax_range);
HWY_EXPORT(softmax_gradient_range);

}  // namespace

void softmax(SoftmaxKind kind, int64_t rows, int64_t features, const float* x, float* y) {
  const auto range =
      use_reference_kernels() ? reference::softmax<float> : HWY_DYNAMIC_DISPATCH(softmax_range);
  parallel_for(rows, rows_per_task(features, kElementsPerRowTask), [&](int64_t begin, int64_t end) {
    range(kind, end - begin, features, x + begin * features, y + begin * features);
  });
}

void softmax_gradient(SoftmaxKind kind, int64_t rows, int64_t features, const float* y,
                      const float* dy, float* dx) {
  const auto range = use_reference_kernels() ? reference::softmax_gradient<float>
                                             : HWY_DYNAMIC_DISPATCH(softmax_gradient_range);
  parallel_for(rows, rows_per_task(features, kElementsPerRowTask), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * features;
    range(kind, end - begin, features, y + offset, dy + offset, dx + offset);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
