#include "lacuna/framework/data/changes/mixup.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// In (0, 1), both ends left out.
std::pair<double, double> two_uniforms(const CounterRng& rng, uint64_t place) {
  const auto words = rng.block(place);
  return {(words[0] + 0.5) * 0x1.0p-32, (words[1] + 0.5) * 0x1.0p-32};
}

}  // namespace

double draw_beta(const CounterRng& rng, uint64_t place, double alpha) {
  const double a = 2.0 * alpha, b = std::sqrt((a - 2.0) / (2.0 * alpha * alpha - a));
  for (uint64_t trial = 0;; ++trial) {
    const auto [u, v] = two_uniforms(rng, (place << 32) + trial);
    if (alpha <= 1.0) {
      // x / (x + y) of x = u^(1/α), y = v^(1/α), by logarithms: a small α makes both vanish.
      const double x = std::log(u) / alpha, y = std::log(v) / alpha, most = std::max(x, y);
      const double sum = std::exp(x - most) + std::exp(y - most);
      if (most + std::log(sum) > 0.0) continue;  // x + y > 1
      return std::exp(x - most) / sum;
    }
    const double c = b * std::log(u / (1.0 - u)), w = alpha * std::exp(c), z = u * u * v;
    const double r = (alpha + 1.0 / b) * c - std::log(4.0);
    if (r + a * std::log(a / (alpha + w)) < std::log(z)) continue;
    return w / (alpha + w);
  }
}

std::vector<Mixture> draw_mixtures(std::span<const int64_t> indices, int64_t size, double alpha,
                                   const CounterRng& rng) {
  std::vector<Mixture> mixtures;
  mixtures.reserve(indices.size());
  for (const int64_t index : indices) {
    const auto place = static_cast<uint64_t>(index) * 2;
    const double b = draw_beta(rng, place, alpha);
    mixtures.push_back(
        {.other = static_cast<int64_t>(rng.below((place + 1) << 32, static_cast<uint64_t>(size))),
         .own_share = static_cast<float>(std::max(b, 1.0 - b))});
  }
  return mixtures;
}

void mix(Tensor& own, const Tensor& other, std::span<const Mixture> mixtures) {
  if (mixtures.empty()) return;
  if (own.shape() != other.shape()) {
    throw StateError(fmt::format("mixup: examples of shapes {} and {} cannot be mixed",
                                 own.shape().to_string(), other.shape().to_string()));
  }
  const int64_t step = own.numel() / static_cast<int64_t>(mixtures.size());
  float* x = own.mutable_data();
  const float* y = other.data();
  for (const Mixture& mixture : mixtures) {
    const float share = mixture.own_share, rest = 1.0f - share;
    for (int64_t i = 0; i < step; ++i) x[i] = share * x[i] + rest * y[i];
    x += step;
    y += step;
  }
}

}  // namespace lacuna
