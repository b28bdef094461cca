// How a global sparsity is distributed over the layers. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// Uniform: every tensor has the given sparsity, counted separately. The others share one budget of
/// int((1 − s)·Σ numel) nonzeros (float32, truncated). *Sources:* Er and Erk: Mocanu et al. 2018
/// and Evci et al. 2020 (arXiv:1911.11134), Igq: Vysogorets & Kempe 2023 (arXiv:2107.02306).
struct Distribution {
  enum class Kind { Uniform, Er, Erk, Igq };
  Kind kind = Kind::Uniform;
  double power = 1.0;  ///< of Erk's density ∝ (Σ dims / Π dims)^power

  /// null → uniform; "uniform", "er", "erk", "igq". *Errors:* ConfigError.
  static Distribution from_config(const Config& config);
};

/// Real-valued densities in [0, 1], one per tensor, whose numel-weighted mean is `density` (for
/// Uniform: all equal to it). A layer whose share would exceed 1 becomes dense, and the rest is
/// solved again until no share does.
std::vector<double> layer_densities(const Distribution& distribution, double density,
                                    const std::vector<Shape>& shapes);

/// Nonzeros per tensor for a sparsity in [0, 1]. For all but Uniform they add up to the budget
/// exactly, by largest remainders. *Errors:* ConfigError if there are fewer nonzeros than tensors,
/// unless the sparsity is 1; it states the largest possible sparsity. A small tensor may still get
/// no nonzero.
std::vector<int64_t> distribute_nnz(const Distribution& distribution, float sparsity,
                                    const std::vector<Shape>& shapes);

/// The same for a density in (0, 1], in double precision: for layers with so many elements that
/// 1 - sparsity is too coarse in float32.
std::vector<int64_t> distribute_density(const Distribution& distribution, double density,
                                        const std::vector<Shape>& shapes);

/// Splits a budget over tensors by real-valued shares that add up to it: truncates, then gives the
/// remaining ones to the largest remainders (ties: the earlier), never above `numels`.
std::vector<int64_t> round_to_budget(const std::vector<double>& shares,
                                     const std::vector<int64_t>& numels, int64_t budget);

}  // namespace lacuna
