// How a global sparsity is distributed over the layers. Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/sparsity/options/loss_table.h"

namespace lacuna {

/// Uniform: every tensor has the sparsity itself, counted for itself. The others share one budget
/// of int((1 − s)·Σ numel) nonzeros (float32, truncated).
/// *Sources:* Er and Erk: Mocanu et al. 2018 and Evci et al. 2020 (arXiv:1911.11134), Igq:
/// Vysogorets & Kempe 2023 (arXiv:2107.02306). Measured: the counts of least loss by a table of
/// losses, if the losses of pruning single weights add up.
struct Distribution {
  enum class Kind { Uniform, Er, Erk, Igq, Measured };
  Kind kind = Kind::Uniform;
  double power = 1.0;  ///< of Erk's density ∝ (Σ dims / Π dims)^power
  /// Of Measured: the table that was given, of these weights and perhaps others.
  std::shared_ptr<const LossTable> table = {};
  /// Of Measured: the rows of the tensors, in their order (`take_rows`). Without them each tensor
  /// gets the sparsity itself: what is planned before anything is measured.
  std::shared_ptr<const LossTable> losses = {};
  /// Of Measured without `table`: the sparsities at which they are measured, ascending in (0, 1).
  std::vector<double> levels = {};
  /// Of Measured, where something else than nonzeros is limited: the density of each tensor,
  /// whatever the sparsity is.
  std::vector<double> densities = {};

  /// null → uniform; "uniform", "er", "erk", "igq", "measured", or a map with `type` and, of
  /// measured, `table` (a LossTable) or `levels`. *Errors:* ConfigError.
  static Distribution from_config(const Config& config);
  /// Takes the rows of these parameters from a table. *Errors:* ConfigError, as LossTable::of.
  void take_rows(const LossTable& given, const std::vector<std::string>& names,
                 const std::vector<Shape>& shapes);
};

/// Real-valued densities in [0, 1], one per tensor, whose numel-weighted mean is `density` (for
/// Uniform: all equal to it). A layer whose share would exceed 1 becomes dense, and the rest is
/// solved again until none does.
std::vector<double> layer_densities(const Distribution& distribution, double density,
                                    const std::vector<Shape>& shapes);

/// Nonzeros per tensor for a sparsity in [0, 1]. For all but Uniform they add up to the budget
/// exactly, by largest remainders. *Errors:* ConfigError when the budget leaves a tensor without
/// any nonzero, or fewer than the sparsest losses of a table are for: states the largest sparsity
/// that can be reached.
std::vector<int64_t> distribute_nnz(const Distribution& distribution, float sparsity,
                                    const std::vector<Shape>& shapes);

/// Splits a budget over tensors by real-valued shares that add up to it: truncates, then gives the
/// remaining ones to the largest remainders (ties: the earlier), never above `numels`.
std::vector<int64_t> round_to_budget(const std::vector<double>& shares,
                                     const std::vector<int64_t>& numels, int64_t budget);

}  // namespace lacuna
