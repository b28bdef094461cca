// Row by row, vectors along the row, which stays in the first-level cache between the passes. Tasks
// have about 8192 elements. Those of the gradient are whole blocks of rows, which are also summed
// over the rows.
#include "lacuna/framework/kernels/rowwise/norm.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/rowwise/norm_reference.hpp"
#include "lacuna/framework/kernels/rowwise/reduce_reference.hpp"
#include "lacuna/framework/kernels/rowwise/rms_norm_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

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

void layer_norm_of_sum_range(const NormShape& shape, double eps, const float* x, const float* added,
                             const float* weight, const float* bias, float* sum, float* y,
                             float* mean, float* inverse_deviation) {
  const int64_t n = shape.features;
  for (int64_t r = 0; r < shape.rows; ++r, x += n, added += n, sum += n, y += n) {
    map([](Vector v, Vector a) HWY_ATTR { return hn::Add(v, a); }, n, sum, x, added);
    layer_norm_range({1, n}, eps, sum, weight, bias, y, mean + r, inverse_deviation + r);
  }
}

// The sums over a row of dy w and of dy w n. Adds dy n and dy to `products` and `totals`.
struct RowSums {
  double average = 0.0, projection = 0.0;
};
template <bool kCentered>
HWY_INLINE RowSums sum_row(int64_t n, const float* x, const float* weight, Vector center,
                           Vector factor, const float* dy, float* products, float* totals) {
  constexpr int64_t kChunk = 1024;
  const Floats d;
  const int64_t lanes = lane_count();
  RowSums sums;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = begin + kChunk < n ? begin + kChunk : n;
    Vector average = hn::Zero(d), projection = hn::Zero(d);
    const auto add = [&](Vector v, Vector w, Vector dv, Vector product, Vector total) HWY_ATTR {
      const Vector slope = hn::Mul(dv, hn::Mul(hn::Sub(v, center), factor));
      if constexpr (kCentered) average = hn::MulAdd(dv, w, average);
      projection = hn::MulAdd(slope, w, projection);
      return std::pair(hn::Add(product, slope), hn::Add(total, dv));
    };
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const auto [product, total] =
          add(hn::LoadU(d, x + i), hn::LoadU(d, weight + i), hn::LoadU(d, dy + i),
              hn::LoadU(d, products + i), kCentered ? hn::LoadU(d, totals + i) : average);
      hn::StoreU(product, d, products + i);
      if constexpr (kCentered) hn::StoreU(total, d, totals + i);
    }
    if (const int64_t rest = end - i; rest > 0) {
      const auto [product, total] =
          add(load_part(x + i, rest), load_part(weight + i, rest), load_part(dy + i, rest),
              load_part(products + i, rest), kCentered ? load_part(totals + i, rest) : average);
      store_part(product, products + i, rest);
      if constexpr (kCentered) store_part(total, totals + i, rest);
    }
    sums.average += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, average)));
    sums.projection += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, projection)));
  }
  return sums;
}

template <bool kCentered>
HWY_INLINE void gradient_rows(const NormShape& shape, NormGradient g) {
  const int64_t n = shape.features;
  const auto count = static_cast<double>(n);
  for (int64_t j = 0; j < n; ++j) g.products[j] = 0.0f;
  for (int64_t j = 0; kCentered && j < n; ++j) g.totals[j] = 0.0f;
  for (int64_t r = 0; r < shape.rows; ++r, g.x += n, g.dy += n, g.dx += n) {
    const Vector center = constant(kCentered ? g.mean[r] : 0.0f),
                 factor = constant(g.inverse_deviation[r]);
    const RowSums sums =
        sum_row<kCentered>(n, g.x, g.weight, center, factor, g.dy, g.products, g.totals);
    const Vector average = constant(sums.average / count),
                 projection = constant(sums.projection / count);
    const auto gradient = [=](Vector v, Vector dv, Vector w) HWY_ATTR {
      const Vector normalized = hn::Mul(hn::Sub(v, center), factor);
      const Vector centered = hn::Sub(hn::Mul(dv, w), average);
      return hn::Mul(factor, hn::NegMulAdd(normalized, projection, centered));
    };
    if (g.added == nullptr) {
      map(gradient, n, g.dx, g.x, g.dy, g.weight);
      continue;
    }
    const auto with_added = [=](Vector v, Vector dv, Vector w, Vector a)
                                HWY_ATTR { return hn::Add(gradient(v, dv, w), a); };
    map(with_added, n, g.dx, g.x, g.dy, g.weight, g.added);
    g.added += n;
  }
}

void layer_norm_gradient_range(const NormShape& shape, const NormGradient& gradient) {
  (gradient.mean == nullptr ? gradient_rows<false> : gradient_rows<true>)(shape, gradient);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(layer_norm_range);
HWY_EXPORT(layer_norm_of_sum_range);
HWY_EXPORT(layer_norm_gradient_range);

void layer_norm_of_sum_reference(const NormShape& shape, double eps, const float* x,
                                 const float* added, const float* weight, const float* bias,
                                 float* sum, float* y, float* mean, float* inverse_deviation) {
  for (int64_t i = 0; i < shape.rows * shape.features; ++i) sum[i] = x[i] + added[i];
  reference::layer_norm(shape, eps, sum, weight, bias, y, mean, inverse_deviation);
}

// A block of rows by the reference, which returns their products one by one.
void layer_norm_gradient_reference(const NormShape& shape, const NormGradient& g) {
  const int64_t n = shape.features, size = shape.rows * n;
  std::vector<float> product(static_cast<size_t>(size)), dx = product;
  if (g.mean != nullptr) {
    reference::layer_norm_gradient(shape, g.x, g.weight, g.mean, g.inverse_deviation, g.dy,
                                   dx.data(), product.data());
    reference::sum_columns(g.dy, shape.rows, n, n, g.totals);
  } else {
    reference::rms_norm_gradient(shape, g.x, g.weight, g.inverse_deviation, g.dy, dx.data(),
                                 product.data());
  }
  reference::sum_columns(product.data(), shape.rows, n, n, g.products);
  for (int64_t i = 0; i < size; ++i) {
    g.dx[i] = dx[static_cast<size_t>(i)] + (g.added == nullptr ? 0.0f : g.added[i]);
  }
}

}  // namespace

void layer_norm(const NormShape& shape, double eps, const float* x, const float* weight,
                const float* bias, float* y, float* mean, float* inverse_deviation) {
  const auto range = use_reference_kernels() ? reference::layer_norm<float>
                                             : HWY_DYNAMIC_DISPATCH(layer_norm_range);
  const int64_t n = shape.features;
  parallel_for(shape.rows, rows_per_task(n, kElementsPerRowTask), [&](int64_t begin, int64_t end) {
    range({end - begin, n}, eps, x + begin * n, weight, bias, y + begin * n, mean + begin,
          inverse_deviation + begin);
  });
}

void layer_norm_of_sum(const NormShape& shape, double eps, const float* x, const float* added,
                       const float* weight, const float* bias, float* sum, float* y, float* mean,
                       float* inverse_deviation) {
  const auto range = use_reference_kernels() ? layer_norm_of_sum_reference
                                             : HWY_DYNAMIC_DISPATCH(layer_norm_of_sum_range);
  const int64_t n = shape.features;
  parallel_for(shape.rows, rows_per_task(n, kElementsPerRowTask), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * n;
    range({end - begin, n}, eps, x + offset, added + offset, weight, bias, sum + offset, y + offset,
          mean + begin, inverse_deviation + begin);
  });
}

void layer_norm_gradient(const NormShape& shape, const NormGradient& gradient) {
  const auto range = use_reference_kernels() ? layer_norm_gradient_reference
                                             : HWY_DYNAMIC_DISPATCH(layer_norm_gradient_range);
  const int64_t n = shape.features;
  const int64_t grain = std::max<int64_t>(1, rows_per_task(n, kElementsPerRowTask) / kNormRows);
  parallel_for(norm_row_blocks(shape.rows), grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t row = block * kNormRows, offset = row * n;
      NormGradient g = gradient;
      g.x += offset, g.dy += offset, g.dx += offset;
      g.inverse_deviation += row;
      g.products += block * n;
      if (g.mean != nullptr) g.mean += row, g.totals += block * n;
      if (g.added != nullptr) g.added += offset;
      range({std::min(kNormRows, shape.rows - row), n}, g);
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
