// What costs at any density, from those at the measured ones.
#include "lacuna/framework/layouts/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "lacuna/framework/layouts/cost/cost_cache.hpp"

namespace lacuna {
namespace {

// The smallest density that is measured: 2^(−kSparsest / 2).
constexpr int kSparsest = 16;

double density_of(int half_powers) { return std::exp2(-0.5 * half_powers); }

// The costs of a weight at one of the measured densities.
LayoutCosts costs_at(const Shape& shape, int half_powers, int64_t batch, const Layout& compressed,
                     PatternLifetime lifetime, bool& measured_now) {
  const WeightClass c =
      class_of(compressed, lifetime, shape, half_powers, std::max<int64_t>(batch, 1));
  static CostCache cache;
  LayoutCosts costs = cache.find(c, measured_now);
  const double scale = static_cast<double>(shape.numel()) / static_cast<double>(c.out * c.in) *
                       static_cast<double>(std::max<int64_t>(batch, 1)) /
                       static_cast<double>(c.batch);
  costs.masked_ms *= scale;
  costs.compressed_ms *= scale;
  return costs;
}

// Between the two nearest measured densities, on a line: what runs is proportional to the density
// but for a part that does not depend on it.
LayoutCosts costs_between(const Shape& shape, double density, int64_t batch,
                          const Layout& compressed, PatternLifetime lifetime, bool& measured_now) {
  const double half_powers =
      std::clamp(-2.0 * std::log2(density), 0.0, static_cast<double>(kSparsest));
  const auto denser = static_cast<int>(half_powers);
  const LayoutCosts dense = costs_at(shape, denser, batch, compressed, lifetime, measured_now);
  if (denser == kSparsest || half_powers == denser) return dense;
  const LayoutCosts sparse = costs_at(shape, denser + 1, batch, compressed, lifetime, measured_now);
  const double low = density_of(denser + 1), share = (density - low) / (density_of(denser) - low);
  return {.masked_ms = std::lerp(sparse.masked_ms, dense.masked_ms, share),
          .compressed_ms = std::lerp(sparse.compressed_ms, dense.compressed_ms, share)};
}

}  // namespace

LayoutChoice compare_layouts(const Shape& shape, int64_t nnz, int64_t batch,
                             const Layout& compressed, PatternLifetime lifetime) {
  if (shape.rank() != 2 || shape.numel() == 0) {
    return {.layout = &masked_layout(), .costs = {}, .reason = "masked: no matrix"};
  }
  const double density =
      std::max(static_cast<double>(nnz), 1.0) / static_cast<double>(shape.numel());
  bool measured_now = false;
  const LayoutCosts costs =
      costs_between(shape, density, batch, compressed, lifetime, measured_now);
  const bool faster = costs.compressed_ms < costs.masked_ms;
  const std::string name(compressed.name());
  char numbers[120];
  std::snprintf(numbers, sizeof numbers, "%s %.3g ms a step, masked %.3g ms (%s)", name.c_str(),
                costs.compressed_ms, costs.masked_ms,
                measured_now ? "measured now" : "measured before");
  return {.layout = faster ? &compressed : &masked_layout(),
          .costs = costs,
          .reason = (faster ? name : "masked") + ": " + numbers};
}

double density_limit(const Shape& shape, int64_t batch, const Layout& compressed,
                     PatternLifetime lifetime) {
  if (shape.rank() != 2 || shape.numel() == 0) return 0.0;
  // By how much the compressed layout is slower.
  const auto lag = [&](int half_powers) {
    bool ignored = false;
    const LayoutCosts costs = costs_at(shape, half_powers, batch, compressed, lifetime, ignored);
    return costs.compressed_ms - costs.masked_ms;
  };
  int slower = -1, faster = kSparsest + 1;  // bisection over the measured densities
  while (faster - slower > 1) {
    const int middle = (slower + faster) / 2;
    (lag(middle) < 0.0 ? faster : slower) = middle;
  }
  if (faster > kSparsest) return 0.0;
  if (slower < 0) return 1.0;
  const double gain = -lag(faster), loss = lag(slower);  // the line between them crosses zero
  return std::lerp(density_of(faster), density_of(slower), gain / (gain + loss));
}

}  // namespace lacuna
