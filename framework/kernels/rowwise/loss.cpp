// Cross-entropy: row by row, vectors along the row; with the 10 classes of a digit a row is one
// masked vector. Tasks of 16384 elements, so that 128 × 10 logits start no threads.
#include "lacuna/framework/kernels/rowwise/loss.h"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/rowwise/block_sum.h"
#include "lacuna/framework/kernels/rowwise/loss_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/loss.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

double squared_difference_range(const float* a, const float* b, int64_t count) {
  const auto square = [](Vector u, Vector v) HWY_ATTR {
    const Vector difference = hn::Sub(u, v);
    return hn::Mul(difference, difference);
  };
  return sum_of(square, count, a, b);
}

void scaled_difference_range(float factor, const float* a, const float* b, float* y,
                             int64_t count) {
  const Vector f = constant(factor);
  map([f](Vector u, Vector v) HWY_ATTR { return hn::Mul(f, hn::Sub(u, v)); }, count, y, a, b);
}

double cross_entropy_row(const float* x, int64_t classes, int64_t label, double smoothing) {
  const float maximum = max_of(classes, x);
  const Vector largest = constant(maximum);
  const auto power = [=](Vector v) HWY_ATTR { return exp(hn::Sub(v, largest)); };
  const double logarithm = maximum + std::log(sum_of(power, classes, x));
  double loss = logarithm - (1.0 - smoothing) * x[label];
  if (smoothing > 0.0) {  // else an infinite logit would make 0 · ∞ of it
    const double sum = sum_of([](Vector v) HWY_ATTR { return v; }, classes, x);
    loss -= smoothing / static_cast<double>(classes) * sum;
  }
  return loss;
}

void cross_entropy_gradient_row(const float* x, int64_t classes, int64_t label, double smoothing,
                                float factor, float* dx) {
  const Vector largest = constant(max_of(classes, x));
  map([=](Vector v) HWY_ATTR { return exp(hn::Sub(v, largest)); }, classes, dx, x);
  const double total = sum_of([](Vector v) HWY_ATTR { return v; }, classes, dx);
  const Vector share = constant(factor / total);
  const Vector floor = constant(factor * smoothing / static_cast<double>(classes));
  map([=](Vector v) HWY_ATTR { return hn::MulSub(v, share, floor); }, classes, dx, dx);
  dx[label] -= static_cast<float>(factor * (1.0 - smoothing));
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(squared_difference_range);
HWY_EXPORT(scaled_difference_range);
HWY_EXPORT(cross_entropy_row);
HWY_EXPORT(cross_entropy_gradient_row);

constexpr int64_t kGrain = 1 << 14;

int64_t rows_per_task(int64_t classes) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes));
}

double cross_entropy_row_reference(const float* x, int64_t classes, int64_t label,
                                   double smoothing) {
  return reference::cross_entropy(x, classes, label, smoothing);
}

}  // namespace

double sum_squared_difference(std::span<const float> a, std::span<const float> b) {
  const auto range = use_reference_kernels() ? reference::sum_squared_difference<double, float>
                                             : HWY_DYNAMIC_DISPATCH(squared_difference_range);
  return sum_blocks(static_cast<int64_t>(a.size()), kGrain, [&](int64_t begin, int64_t end) {
    return range(a.data() + begin, b.data() + begin, end - begin);
  });
}

void scaled_difference(float factor, std::span<const float> a, std::span<const float> b,
                       std::span<float> y) {
  const auto range = use_reference_kernels() ? reference::scaled_difference<float>
                                             : HWY_DYNAMIC_DISPATCH(scaled_difference_range);
  parallel_for(static_cast<int64_t>(y.size()), kGrain, [&](int64_t begin, int64_t end) {
    range(factor, a.data() + begin, b.data() + begin, y.data() + begin, end - begin);
  });
}

double cross_entropy(const CrossEntropyProblem& p) {
  const auto row = use_reference_kernels() ? cross_entropy_row_reference
                                           : HWY_DYNAMIC_DISPATCH(cross_entropy_row);
  return sum_blocks(p.examples, rows_per_task(p.classes), [&](int64_t begin, int64_t end) {
    double total = 0.0;
    for (int64_t r = begin; r < end; ++r) {
      total += row(p.logits + r * p.classes, p.classes, p.labels[r], p.label_smoothing);
    }
    return total;
  });
}

void cross_entropy_gradient(const CrossEntropyProblem& p, float factor, float* dx) {
  const auto row = use_reference_kernels() ? reference::cross_entropy_gradient<float>
                                           : HWY_DYNAMIC_DISPATCH(cross_entropy_gradient_row);
  parallel_for(p.examples, rows_per_task(p.classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      row(p.logits + r * p.classes, p.classes, p.labels[r], p.label_smoothing, factor,
          dx + r * p.classes);
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
