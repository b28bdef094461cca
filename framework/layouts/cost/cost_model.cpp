// The costs at any density, computed from those at the measured densities.
#include "lacuna/framework/layouts/cost/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/convolution.hpp"
#include "lacuna/framework/layouts/cost/cost_cache.hpp"

namespace lacuna {
namespace {

// The smallest density that is measured: 2^(−kSparsest / 2).
constexpr int kSparsest = 16;

double density_of(int half_powers) { return std::exp2(-0.5 * half_powers); }

CostCache& cache() {
  static CostCache the_one;
  return the_one;
}

double beyond(double few, double many, double share) {
  return many + share * std::max(many - few, 0.0);
}

// The costs of a weight at one of the measured densities. Batches of more rows than are timed, as a
// transformer's tokens are, lie on the line through two that are: each row costs the same, and the
// optimizer's update or the making of a pattern for one step costs once. (Zen 4, 256 × 256 at a
// density of ½, csr for one step over masked: 4.5 with 64 rows, 1.7 with 256, 0.93 with 1024, where
// the line gives 0.92; for many steps 0.6 with each of them, but 1.6 with 8 rows.)
LayoutCosts costs_at(const Shape& shape, int half_powers, int64_t rows, const Layout& compressed,
                     PatternLifetime lifetime, bool& measured_now) {
  constexpr int64_t kFewRows = kMostTimedRows / 4;
  const int64_t timed = std::clamp<int64_t>(rows, 1, kMostTimedRows);
  const auto costs_with = [&](int64_t some) {
    return cache().find(class_of(compressed, lifetime, shape, half_powers, some), measured_now);
  };
  LayoutCosts costs = costs_with(timed);
  if (rows > timed) {
    const LayoutCosts few = costs_with(kFewRows);
    const double share = static_cast<double>(rows - timed) / static_cast<double>(timed - kFewRows);
    costs = {.masked_ms = beyond(few.masked_ms, costs.masked_ms, share),
             .compressed_ms = beyond(few.compressed_ms, costs.compressed_ms, share)};
  }
  const WeightClass c = class_of(compressed, lifetime, shape, half_powers, timed);
  const double scale = static_cast<double>(shape.numel()) / static_cast<double>(c.out * c.in);
  costs.masked_ms *= scale;
  costs.compressed_ms *= scale;
  return costs;
}

// Between the two nearest measured densities, on a line: what runs is proportional to the density
// but for a part that does not depend on it.
template <class CostsAt>
LayoutCosts costs_between(double density, const CostsAt& costs_at_density) {
  const double half_powers =
      std::clamp(-2.0 * std::log2(density), 0.0, static_cast<double>(kSparsest));
  const auto denser = static_cast<int>(half_powers);
  const LayoutCosts dense = costs_at_density(denser);
  if (denser == kSparsest || half_powers == denser) return dense;
  const LayoutCosts sparse = costs_at_density(denser + 1);
  const double low = density_of(denser + 1), share = (density - low) / (density_of(denser) - low);
  return {.masked_ms = std::lerp(sparse.masked_ms, dense.masked_ms, share),
          .compressed_ms = std::lerp(sparse.compressed_ms, dense.compressed_ms, share)};
}

// The faster of the two, and why.
template <class CostsAt>
LayoutChoice choose(const Shape& shape, int64_t nnz, const Layout& compressed,
                    const CostsAt& costs_at_density) {
  const double density =
      std::max(static_cast<double>(nnz), 1.0) / static_cast<double>(shape.numel());
  bool measured_now = false;
  const LayoutCosts costs = costs_between(
      density, [&](int half_powers) { return costs_at_density(half_powers, measured_now); });
  const bool faster = costs.compressed_ms < costs.masked_ms;
  const std::string name(compressed.name());
  char numbers[120];
  std::snprintf(numbers, sizeof numbers, "%s %.3g ms per step, masked %.3g ms (%s)", name.c_str(),
                costs.compressed_ms, costs.masked_ms,
                measured_now ? "measured now" : "measured before");
  return {.layout = faster ? &compressed : &masked_layout(),
          .costs = costs,
          .reason = (faster ? name : "masked") + ": " + numbers};
}

bool fits(int64_t size, int64_t kernel, int64_t padding, int64_t dilation) {
  return size > 0 && size + 2 * padding > dilation * (kernel - 1);
}

bool runs_on_nonzeros(const ConvolutionShape& shape) {
  const Window& w = shape.window;
  return shape.groups == 1 && shape.weight_shape().numel() > 0 &&
         fits(shape.image.height, w.kernel.height, w.padding.height, w.dilation.height) &&
         fits(shape.image.width, w.kernel.width, w.padding.width, w.dilation.width);
}

// The costs of a convolution's weight, for the batch that it is measured with.
LayoutCosts costs_of(const ConvolutionShape& shape, int half_powers, bool& measured_now) {
  WeightClass c = class_of(shape, half_powers);
  c.convolution->algorithms = fastest_algorithms(shape);
  LayoutCosts costs = cache().find(c, measured_now);
  ConvolutionShape whole = shape;
  whole.batch = std::max<int64_t>(shape.batch, 1);
  const double scale = whole.operations(shape.weight_shape().numel()) /
                       c.convolution->operations(c.convolution->weight_shape().numel());
  costs.masked_ms *= scale;
  costs.compressed_ms *= scale;
  return costs;
}

// The largest density at which the compressed layout is not slower: found by bisection, at the zero
// of the line through the differences at two measured densities.
template <class CostsAt>
double limit_of(const CostsAt& costs_at_density) {
  const auto lag = [&](int half_powers) {
    const LayoutCosts costs = costs_at_density(half_powers);
    return costs.compressed_ms - costs.masked_ms;
  };
  int slower = -1, faster = kSparsest + 1;
  while (faster - slower > 1) {
    const int middle = (slower + faster) / 2;
    (lag(middle) < 0.0 ? faster : slower) = middle;
  }
  if (faster > kSparsest) return 0.0;
  if (slower < 0) return 1.0;
  const double gain = -lag(faster), loss = lag(slower);
  return std::lerp(density_of(faster), density_of(slower), gain / (gain + loss));
}

}  // namespace

void announce_measurements(std::function<void(const std::string& text)> say) {
  cache().announce(std::move(say));
}

LayoutChoice compare_layouts(const Shape& shape, int64_t nnz, int64_t rows,
                             const Layout& compressed, PatternLifetime lifetime) {
  if (shape.rank() != 2 || shape.numel() == 0) {
    return {.layout = &masked_layout(), .costs = {}, .reason = "masked: no matrix"};
  }
  return choose(shape, nnz, compressed, [&](int half_powers, bool& measured_now) {
    return costs_at(shape, half_powers, rows, compressed, lifetime, measured_now);
  });
}

LayoutChoice compare_layouts(const ConvolutionShape& shape, int64_t nnz) {
  if (!runs_on_nonzeros(shape)) {
    return {.layout = &masked_layout(), .costs = {}, .reason = "masked: it runs dense"};
  }
  return choose(shape.weight_shape(), nnz, csr_layout(), [&](int half_powers, bool& measured_now) {
    return costs_of(shape, half_powers, measured_now);
  });
}

ConvolutionAlgorithms fastest_algorithms(const ConvolutionShape& shape) {
  const Window& w = shape.window;
  ConvolutionAlgorithms fastest;
  if (!runs_on_nonzeros(shape) || w.kernel != Extent{3, 3} || w.stride != Extent{1, 1} ||
      w.dilation != Extent{1, 1} || !has_winograd(*class_of(shape, 0).convolution)) {
    return fastest;
  }
  const auto faster = [&](WeightClass::Product product) {
    WeightClass c = class_of(shape, 0);
    c.product = product;
    bool ignored = false;
    const LayoutCosts costs = cache().find(c, ignored);
    return costs.compressed_ms < costs.masked_ms ? winograd_for(shape)
                                                 : ConvolutionAlgorithm::Direct;
  };
  fastest.forward = faster(WeightClass::Product::Forward);
  fastest.input_gradient = faster(WeightClass::Product::InputGradient);
  fastest.weight_gradient = faster(WeightClass::Product::WeightGradient);
  return fastest;
}

double density_limit(const Shape& shape, int64_t rows, const Layout& compressed,
                     PatternLifetime lifetime) {
  if (shape.rank() != 2 || shape.numel() == 0) return 0.0;
  return limit_of([&](int half_powers) {
    bool ignored = false;
    return costs_at(shape, half_powers, rows, compressed, lifetime, ignored);
  });
}

double density_limit(const ConvolutionShape& shape) {
  if (!runs_on_nonzeros(shape)) return 0.0;
  return limit_of([&](int half_powers) {
    bool ignored = false;
    return costs_of(shape, half_powers, ignored);
  });
}

}  // namespace lacuna
