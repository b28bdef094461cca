// Row by row, vectors along the row, which stays in the first-level cache between the passes.
// Tasks of about 8192 elements.
#include "lacuna/framework/kernels/rowwise/norm.hpp"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/rowwise/norm_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void layer_norm_range(const NormShape& shape, double eps, const float* x, const float* weight,
                      const float* bias, float* y, float* mean, float* inverse_deviation) {
  const int64_t n = shape.features;
  const auto count = static_cast<double>(n);
  for (int64_t r = 0; r < shape.rows; ++r, x += n, y += n) {
    const double sum = sum_of([](Vector v) HWY_ATTR { return v; }, n, x);
    mean[r] = static_cast<float>(sum / count);
    const Vector center = constant(mean[r]);
    const auto square = [=](Vector v) HWY_ATTR {
      const Vector difference = hn::Sub(v, center);
      return hn::Mul(difference, difference);
    };
    const double deviation = std::sqrt(sum_of(square, n, x) / count + eps);
    inverse_deviation[r] = static_cast<float>(1.0 / deviation);
    const Vector factor = constant(inverse_deviation[r]);
    const auto normalize = [=](Vector v, Vector w, Vector b) HWY_ATTR {
      return hn::MulAdd(hn::Mul(hn::Sub(v, center), factor), w, b);
    };
    map(normalize, n, y, x, weight, bias);
  }
}

void layer_norm_gradient_range(const NormShape& shape, const float* x, const float* weight,
                               const float* mean, const float* inverse_deviation, const float* dy,
                               float* dx, float* product) {
  const int64_t n = shape.features;
  const auto count = static_cast<double>(n);
  const auto multiply_vectors = [](Vector u, Vector v) HWY_ATTR { return hn::Mul(u, v); };
  for (int64_t r = 0; r < shape.rows; ++r, x += n, dy += n, dx += n, product += n) {
    const Vector center = constant(mean[r]), factor = constant(inverse_deviation[r]);
    const auto normalized = [=](Vector v) HWY_ATTR { return hn::Mul(hn::Sub(v, center), factor); };
    map([=](Vector v, Vector dv) HWY_ATTR { return hn::Mul(dv, normalized(v)); }, n, product, x,
        dy);
    const Vector average = constant(sum_of(multiply_vectors, n, dy, weight) / count);
    const Vector projection = constant(sum_of(multiply_vectors, n, product, weight) / count);
    const auto gradient = [=](Vector v, Vector dv, Vector w) HWY_ATTR {
      const Vector centered = hn::Sub(hn::Mul(dv, w), average);
      return hn::Mul(factor, hn::NegMulAdd(normalized(v), projection, centered));
    };
    map(gradient, n, dx, x, dy, weight);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(layer_norm_range);
HWY_EXPORT(layer_norm_gradient_range);

int64_t rows_per_task(int64_t features) {
  return std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(1, features));
}

}  // namespace

void layer_norm(const NormShape& shape, double eps, const float* x, const float* weight,
                const float* bias, float* y, float* mean, float* inverse_deviation) {
  const auto range = use_reference_kernels() ? reference::layer_norm<float>
                                             : HWY_DYNAMIC_DISPATCH(layer_norm_range);
  const int64_t n = shape.features;
  parallel_for(shape.rows, rows_per_task(n), [&](int64_t begin, int64_t end) {
    range({end - begin, n}, eps, x + begin * n, weight, bias, y + begin * n, mean + begin,
          inverse_deviation + begin);
  });
}

void layer_norm_gradient(const NormShape& shape, const float* x, const float* weight,
                         const float* mean, const float* inverse_deviation, const float* dy,
                         float* dx, float* product) {
  const auto range = use_reference_kernels() ? reference::layer_norm_gradient<float>
                                             : HWY_DYNAMIC_DISPATCH(layer_norm_gradient_range);
  const int64_t n = shape.features;
  parallel_for(shape.rows, rows_per_task(n), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * n;
    range({end - begin, n}, x + offset, weight, mean + begin, inverse_deviation + begin,
          dy + offset, dx + offset, product + offset);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
