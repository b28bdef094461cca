// mixup: examples mixed with others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The example with which another is mixed, and the first one's share of the mixture.
struct Mixture {
  int64_t other = 0;       ///< an example
  float own_share = 1.0f;  ///< in [½, 1]
};

/// b of a Beta(α, α) distribution, in [0, 1], a pure function of the generator and the place; each
/// place owns 2³² draws. *Requires* α > 0. *Source:* for α ≤ 1 Jöhnk's method, above Cheng's BB
/// (Communications of the ACM 21, 1978).
double draw_beta(const CounterRng& rng, uint64_t place, double alpha);

/// For each example `indices[i]`: an example of all `size`, each as likely as any other, and
/// max(b, 1 − b) with b of Beta(α, α). So its own label always has the larger share. A pure
/// function of the generator and the index.
std::vector<Mixture> draw_mixtures(std::span<const int64_t> indices, int64_t size, double alpha,
                                   const CounterRng& rng);

/// Example i of `own`, [n, …], becomes share · own + (1 − share) · other, with its mixture's share.
/// *Requires* n mixtures, and tensors of one shape in row-major order. *Cost:* one pass.
void mix(Tensor& own, const Tensor& other, std::span<const Mixture> mixtures);

}  // namespace lacuna
