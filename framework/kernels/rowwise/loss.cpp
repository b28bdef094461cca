// Cross-entropy: row by row, vectors along the row; with the 10 classes of a digit a row is one
// masked vector. Tasks of 16384 elements, so that 128 × 10 logits start no threads.
#include "lacuna/framework/kernels/rowwise/loss.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/rowwise/block_sum.hpp"
#include "lacuna/framework/kernels/rowwise/loss_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

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

double cross_entropy_row(const float* x, int64_t classes, int64_t label,
                         const reference::ClassShares& shares) {
  const float maximum = max_of(classes, x);
  const Vector largest = constant(maximum);
  const auto power = [=](Vector v) HWY_ATTR { return exp(hn::Sub(v, largest)); };
  const double logarithm = maximum + std::log(sum_of(power, classes, x));
  double loss = shares.total * logarithm - shares.label * x[label];
  if (shares.floor > 0.0) {  // else an infinite logit would make 0 · ∞ of it
    const auto product = [](Vector v, Vector w) HWY_ATTR { return hn::Mul(v, w); };
    const double sum = shares.weights == nullptr
                           ? sum_of([](Vector v) HWY_ATTR { return v; }, classes, x)
                           : sum_of(product, classes, x, shares.weights);
    loss -= shares.floor * sum;
  }
  return loss;
}

void cross_entropy_gradient_row(const float* x, int64_t classes, int64_t label,
                                const reference::ClassShares& shares, float factor, float* dx) {
  const Vector largest = constant(max_of(classes, x));
  map([=](Vector v) HWY_ATTR { return exp(hn::Sub(v, largest)); }, classes, dx, x);
  const double total = sum_of([](Vector v) HWY_ATTR { return v; }, classes, dx);
  const Vector share = constant(factor * shares.total / total);
  const Vector floor = constant(factor * shares.floor);
  if (shares.weights == nullptr) {
    map([=](Vector v) HWY_ATTR { return hn::MulSub(v, share, floor); }, classes, dx, dx);
  } else {
    const auto weighted = [=](Vector v, Vector w)
                              HWY_ATTR { return hn::MulSub(v, share, hn::Mul(w, floor)); };
    map(weighted, classes, dx, dx, shares.weights);
  }
  dx[label] -= static_cast<float>(factor * shares.label);
}

double binary_cross_entropy_range(const float* x, const float* targets, int64_t count) {
  const auto loss = [](Vector v, Vector t) HWY_ATTR {
    const Vector rest = keep_nan(v, hn::Log1p(Floats(), exp(hn::Neg(hn::Abs(v)))));
    const Vector linear = hn::Sub(hn::IfThenZeroElse(hn::Lt(v, constant(0.0)), v), hn::Mul(v, t));
    return hn::Add(linear, rest);
  };
  return sum_of(loss, count, x, targets);
}

void binary_cross_entropy_gradient_range(float factor, const float* x, const float* targets,
                                         float* dx, int64_t count) {
  const Vector f = constant(factor), one = constant(1.0);
  const auto gradient = [=](Vector v, Vector t) HWY_ATTR {
    const Vector power = exp(hn::Neg(hn::Abs(v)));
    const Vector above = hn::IfThenElse(hn::Lt(v, constant(0.0)), power, one);
    return hn::Mul(f, hn::Sub(hn::Div(above, hn::Add(one, power)), t));
  };
  map(gradient, count, dx, x, targets);
}

double weighted_binary_cross_entropy_range(const float* x, const float* targets,
                                           const float* weights, int64_t count) {
  const Vector one = constant(1.0);
  const auto loss = [=](Vector v, Vector t, Vector w) HWY_ATTR {
    const Vector logarithm = keep_nan(v, hn::Log1p(Floats(), exp(hn::Neg(hn::Abs(v)))));
    const Vector rest = hn::Sub(logarithm, hn::IfThenElseZero(hn::Lt(v, constant(0.0)), v));
    const Vector share = hn::MulAdd(hn::Sub(w, one), t, one);
    return hn::MulAdd(hn::Sub(one, t), v, hn::Mul(share, rest));
  };
  return sum_of(loss, count, x, targets, weights);
}

void weighted_binary_cross_entropy_gradient_range(float factor, const float* x,
                                                  const float* targets, const float* weights,
                                                  float* dx, int64_t count) {
  const Vector f = constant(factor), one = constant(1.0);
  const auto gradient = [=](Vector v, Vector t, Vector w) HWY_ATTR {
    const Vector power = exp(hn::Neg(hn::Abs(v)));
    const Vector above = hn::IfThenElse(hn::Lt(v, constant(0.0)), power, one);
    const Vector share = hn::MulAdd(hn::Sub(w, one), t, one);
    const Vector probability = hn::Div(above, hn::Add(one, power));
    return hn::Mul(f, hn::MulSub(share, probability, hn::Mul(w, t)));
  };
  map(gradient, count, dx, x, targets, weights);
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
HWY_EXPORT(binary_cross_entropy_range);
HWY_EXPORT(binary_cross_entropy_gradient_range);
HWY_EXPORT(weighted_binary_cross_entropy_range);
HWY_EXPORT(weighted_binary_cross_entropy_gradient_range);

double cross_entropy_row_reference(const float* x, int64_t classes, int64_t label,
                                   const reference::ClassShares& shares) {
  return reference::cross_entropy(x, classes, label, shares);
}

// Σ of the class weights; 0 without any.
double weight_sum(const CrossEntropyProblem& p) {
  if (p.class_weights == nullptr) return 0.0;
  return std::accumulate(p.class_weights, p.class_weights + p.classes, 0.0);
}

reference::ClassShares shares_of(const CrossEntropyProblem& p, double weights, int64_t example) {
  return {p.classes, p.label_smoothing, p.class_weights, weights, p.labels[example]};
}

}  // namespace

double sum_squared_difference(std::span<const float> a, std::span<const float> b) {
  const auto range = use_reference_kernels() ? reference::sum_squared_difference<double, float>
                                             : HWY_DYNAMIC_DISPATCH(squared_difference_range);
  return sum_blocks(static_cast<int64_t>(a.size()), kElementsPerTask,
                    [&](int64_t begin, int64_t end) {
                      return range(a.data() + begin, b.data() + begin, end - begin);
                    });
}

void scaled_difference(float factor, std::span<const float> a, std::span<const float> b,
                       std::span<float> y) {
  const auto range = use_reference_kernels() ? reference::scaled_difference<float>
                                             : HWY_DYNAMIC_DISPATCH(scaled_difference_range);
  parallel_for(static_cast<int64_t>(y.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(factor, a.data() + begin, b.data() + begin, y.data() + begin, end - begin);
  });
}

double cross_entropy(const CrossEntropyProblem& p) {
  const auto row = use_reference_kernels() ? cross_entropy_row_reference
                                           : HWY_DYNAMIC_DISPATCH(cross_entropy_row);
  const double weights = weight_sum(p);
  return sum_blocks(p.examples, rows_per_task(p.classes), [&](int64_t begin, int64_t end) {
    double total = 0.0;
    for (int64_t r = begin; r < end; ++r) {
      if (p.labels[r] == kIgnoredLabel) continue;
      total += row(p.logits + r * p.classes, p.classes, p.labels[r], shares_of(p, weights, r));
    }
    return total;
  });
}

void cross_entropy_gradient(const CrossEntropyProblem& p, float factor, float* dx) {
  const auto row = use_reference_kernels() ? reference::cross_entropy_gradient<float>
                                           : HWY_DYNAMIC_DISPATCH(cross_entropy_gradient_row);
  const double weights = weight_sum(p);
  parallel_for(p.examples, rows_per_task(p.classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (p.labels[r] == kIgnoredLabel) {
        std::fill_n(dx + r * p.classes, p.classes, 0.0f);
        continue;
      }
      row(p.logits + r * p.classes, p.classes, p.labels[r], shares_of(p, weights, r), factor,
          dx + r * p.classes);
    }
  });
}

double binary_cross_entropy(std::span<const float> logits, std::span<const float> targets) {
  const auto range = use_reference_kernels() ? reference::sum_binary_cross_entropy<double, float>
                                             : HWY_DYNAMIC_DISPATCH(binary_cross_entropy_range);
  return sum_blocks(static_cast<int64_t>(logits.size()), kElementsPerTask,
                    [&](int64_t begin, int64_t end) {
                      return range(logits.data() + begin, targets.data() + begin, end - begin);
                    });
}

void binary_cross_entropy_gradient(float factor, std::span<const float> logits,
                                   std::span<const float> targets, std::span<float> dx) {
  const auto range = use_reference_kernels()
                         ? reference::binary_cross_entropy_gradient<float>
                         : HWY_DYNAMIC_DISPATCH(binary_cross_entropy_gradient_range);
  parallel_for(static_cast<int64_t>(dx.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(factor, logits.data() + begin, targets.data() + begin, dx.data() + begin, end - begin);
  });
}

double binary_cross_entropy(std::span<const float> logits, std::span<const float> targets,
                            std::span<const float> weights) {
  const auto range = use_reference_kernels()
                         ? reference::sum_weighted_binary_cross_entropy<double, float>
                         : HWY_DYNAMIC_DISPATCH(weighted_binary_cross_entropy_range);
  return sum_blocks(static_cast<int64_t>(logits.size()), kElementsPerTask,
                    [&](int64_t begin, int64_t end) {
                      return range(logits.data() + begin, targets.data() + begin,
                                   weights.data() + begin, end - begin);
                    });
}

void binary_cross_entropy_gradient(float factor, std::span<const float> logits,
                                   std::span<const float> targets, std::span<const float> weights,
                                   std::span<float> dx) {
  const auto range = use_reference_kernels()
                         ? reference::weighted_binary_cross_entropy_gradient<float>
                         : HWY_DYNAMIC_DISPATCH(weighted_binary_cross_entropy_gradient_range);
  parallel_for(static_cast<int64_t>(dx.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(factor, logits.data() + begin, targets.data() + begin, weights.data() + begin,
          dx.data() + begin, end - begin);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
