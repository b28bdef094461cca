#include "lacuna/framework/data/changes/mixup.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/select/draws.hpp"

namespace lacuna {
namespace {

using Block = std::array<uint32_t, 4>;

// The first draw of a place.
uint64_t first_of(uint64_t place) { return place << 32; }

// In (0, 1), both ends left out.
std::pair<double, double> two_uniforms(const Block& words) {
  return {(words[0] + 0.5) * 0x1.0p-32, (words[1] + 0.5) * 0x1.0p-32};
}

// `block` is that of the place's first draw.
double beta_of(Block block, const CounterRng& rng, uint64_t place, double alpha) {
  const double a = 2.0 * alpha, b = std::sqrt((a - 2.0) / (2.0 * alpha * alpha - a));
  for (uint64_t trial = 1;; block = rng.block(first_of(place) + trial++)) {
    const auto [u, v] = two_uniforms(block);
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

}  // namespace

double draw_beta(const CounterRng& rng, uint64_t place, double alpha) {
  return beta_of(rng.block(first_of(place)), rng, place, alpha);
}

std::vector<Mixture> draw_mixtures(std::span<const int64_t> indices, int64_t size, double alpha,
                                   const CounterRng& rng) {
  const auto place_of = [&](size_t i) { return static_cast<uint64_t>(indices[i]) * 2; };
  std::vector<uint64_t> numbers;  // of each example, one for its share and one for the other
  numbers.reserve(2 * indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    numbers.push_back(first_of(place_of(i)));
    numbers.push_back(first_of(place_of(i) + 1));
  }
  std::vector<uint32_t> words(4 * numbers.size());
  draw_blocks(rng, numbers, words);
  std::vector<Mixture> mixtures;
  mixtures.reserve(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    Block block;
    std::ranges::copy(drawn_block(words, 2 * i), block.begin());
    const double b = beta_of(block, rng, place_of(i), alpha);
    const uint64_t other =
        CounterRng::below_of(drawn_block(words, 2 * i + 1), static_cast<uint64_t>(size));
    mixtures.push_back({.other = static_cast<int64_t>(other),
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
