// One group of one example at a time: first mean and variance over contiguous memory, then channel
// by channel, with vectors along the channel. Tasks have about 8192 elements.
#include "lacuna/framework/kernels/rowwise/group_norm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/rowwise/group_norm_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/group_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// One group of one example; weight and bias are those of its first channel.
void group_norm_group(const GroupNormShape& shape, double eps, const float* x, const float* weight,
                      const float* bias, float* y, float* mean, float* inverse_deviation) {
  const int64_t n = shape.group_channels() * shape.size;
  const auto count = static_cast<double>(n);
  *mean = static_cast<float>(sum_of([](Vector v) HWY_ATTR { return v; }, n, x) / count);
  const Vector center = constant(*mean);
  const auto square = [=](Vector v) HWY_ATTR {
    const Vector difference = hn::Sub(v, center);
    return hn::Mul(difference, difference);
  };
  *inverse_deviation = static_cast<float>(1.0 / std::sqrt(sum_of(square, n, x) / count + eps));
  const Vector factor = constant(*inverse_deviation);
  for (int64_t c = 0; c < shape.group_channels(); ++c) {
    const Vector w = constant(weight[c]), b = constant(bias[c]);
    const auto normalize = [=](Vector v) HWY_ATTR {
      return hn::MulAdd(hn::Mul(hn::Sub(v, center), factor), w, b);
    };
    map(normalize, shape.size, y + c * shape.size, x + c * shape.size);
  }
}

void group_norm_of_sum_group(const GroupNormShape& shape, double eps, const float* x,
                             const float* added, const float* weight, const float* bias, float* sum,
                             float* y, float* mean, float* inverse_deviation) {
  map([](Vector v, Vector a) HWY_ATTR { return hn::Add(v, a); },
      shape.group_channels() * shape.size, sum, x, added);
  group_norm_group(shape, eps, sum, weight, bias, y, mean, inverse_deviation);
}

void group_norm_gradient_group(const GroupNormShape& shape, const float* x, const float* weight,
                               float mean, float inverse_deviation, const float* dy,
                               const float* added, float* dx, float* products, float* totals) {
  const int64_t channels = shape.group_channels(), size = shape.size;
  const auto count = static_cast<double>(channels * size);
  const Vector center = constant(mean), factor = constant(inverse_deviation);
  const auto normalized = [=](Vector v) HWY_ATTR { return hn::Mul(hn::Sub(v, center), factor); };
  const auto product = [=](Vector v, Vector dv) HWY_ATTR { return hn::Mul(dv, normalized(v)); };
  double sum = 0.0, projection = 0.0;
  for (int64_t c = 0; c < channels; ++c) {
    const double along = sum_of(product, size, x + c * size, dy + c * size);
    const double total = sum_of([](Vector v) HWY_ATTR { return v; }, size, dy + c * size);
    products[c] = static_cast<float>(along);
    totals[c] = static_cast<float>(total);
    sum += total * weight[c];
    projection += along * weight[c];
  }
  const Vector average = constant(sum / count), slope = constant(projection / count);
  for (int64_t c = 0; c < channels; ++c) {
    const Vector w = constant(weight[c]);
    const auto gradient = [=](Vector v, Vector dv) HWY_ATTR {
      const Vector centered = hn::Sub(hn::Mul(dv, w), average);
      return hn::Mul(factor, hn::NegMulAdd(normalized(v), slope, centered));
    };
    const int64_t at = c * size;
    if (added == nullptr) {
      map(gradient, size, dx + at, x + at, dy + at);
      continue;
    }
    const auto with_added = [=](Vector v, Vector dv, Vector a)
                                HWY_ATTR { return hn::Add(gradient(v, dv), a); };
    map(with_added, size, dx + at, x + at, dy + at, added + at);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(group_norm_group);
HWY_EXPORT(group_norm_of_sum_group);
HWY_EXPORT(group_norm_gradient_group);

// One group of one example by the reference.
void group_norm_group_reference(const GroupNormShape& shape, double eps, const float* x,
                                const float* weight, const float* bias, float* y, float* mean,
                                float* inverse_deviation) {
  reference::group_norm({1, shape.group_channels(), 1, shape.size}, eps, x, weight, bias, y, mean,
                        inverse_deviation);
}

void group_norm_of_sum_group_reference(const GroupNormShape& shape, double eps, const float* x,
                                       const float* added, const float* weight, const float* bias,
                                       float* sum, float* y, float* mean,
                                       float* inverse_deviation) {
  for (int64_t i = 0; i < shape.group_channels() * shape.size; ++i) sum[i] = x[i] + added[i];
  group_norm_group_reference(shape, eps, sum, weight, bias, y, mean, inverse_deviation);
}

void group_norm_gradient_group_reference(const GroupNormShape& shape, const float* x,
                                         const float* weight, float mean, float inverse_deviation,
                                         const float* dy, const float* added, float* dx,
                                         float* products, float* totals) {
  std::vector<float> own(static_cast<size_t>(shape.group_channels() * shape.size));
  reference::group_norm_gradient({1, shape.group_channels(), 1, shape.size}, x, weight, &mean,
                                 &inverse_deviation, dy, own.data(), products, totals);
  for (size_t i = 0; i < own.size(); ++i) dx[i] = own[i] + (added == nullptr ? 0.0f : added[i]);
}

// Calls body(i, first element, first channel in the batch, first channel in the example) for group
// i of all examples, in parallel.
template <class Body>
void for_each_group(const GroupNormShape& shape, const Body& body) {
  const int64_t channels = shape.group_channels(), n = channels * shape.size;
  if (n == 0) return;
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / n);
  parallel_for(shape.batch * shape.groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      body(i, i * n, i * channels, i % shape.groups * channels);
    }
  });
}

}  // namespace

void group_norm(const GroupNormShape& shape, double eps, const float* x, const float* weight,
                const float* bias, float* y, float* mean, float* inverse_deviation) {
  const auto group =
      use_reference_kernels() ? group_norm_group_reference : HWY_DYNAMIC_DISPATCH(group_norm_group);
  for_each_group(shape, [&](int64_t i, int64_t element, int64_t, int64_t channel) {
    group(shape, eps, x + element, weight + channel, bias + channel, y + element, mean + i,
          inverse_deviation + i);
  });
}

void group_norm_of_sum(const GroupNormShape& shape, double eps, const float* x, const float* added,
                       const float* weight, const float* bias, float* sum, float* y, float* mean,
                       float* inverse_deviation) {
  const auto group = use_reference_kernels() ? group_norm_of_sum_group_reference
                                             : HWY_DYNAMIC_DISPATCH(group_norm_of_sum_group);
  for_each_group(shape, [&](int64_t i, int64_t element, int64_t, int64_t channel) {
    group(shape, eps, x + element, added + element, weight + channel, bias + channel, sum + element,
          y + element, mean + i, inverse_deviation + i);
  });
}

void group_norm_gradient(const GroupNormShape& shape, const float* x, const float* weight,
                         const float* mean, const float* inverse_deviation, const float* dy,
                         const float* added, float* dx, float* products, float* totals) {
  const auto group = use_reference_kernels() ? group_norm_gradient_group_reference
                                             : HWY_DYNAMIC_DISPATCH(group_norm_gradient_group);
  for_each_group(shape, [&](int64_t i, int64_t element, int64_t image, int64_t channel) {
    group(shape, x + element, weight + channel, mean[i], inverse_deviation[i], dy + element,
          added == nullptr ? nullptr : added + element, dx + element, products + image,
          totals + image);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
