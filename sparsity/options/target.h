// SparsityTarget: the target sparsity of an algorithm, in any of its forms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lacuna/framework/config/schedule.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/sparsity/options/distribution.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// A sparsity as number or schedule; or a density, or a mean fan-in, which stay exact where
/// 1 − sparsity is too coarse in float32 (millions of neurons with a fan-in of 8).
class SparsityTarget {
 public:
  SparsityTarget(double sparsity = 0.0) : SparsityTarget(Schedule(sparsity)) {}
  /// *Errors:* ConfigError for a constant that is NaN.
  SparsityTarget(Schedule sparsity);
  /// Fraction of positions kept. *Errors:* ConfigError unless in (0, 1].
  static SparsityTarget density(double density);
  /// Mean nonzeros per row. *Errors:* ConfigError unless above 0.
  static SparsityTarget fan_in(double fan_in);
  /// Reads `sparsity`, `schedule`, `density` or `fan_in`, exactly one of them, from an entry.
  /// *Errors:* ConfigError.
  static SparsityTarget from_config(const Config& entry);

  /// Whether it is the same at every step.
  bool is_constant() const { return density_ || fan_in_ || sparsity_.is_constant(); }
  /// Whether a constant leaves any nonzeros: a sparsity in [0, 1), in its given precision.
  bool is_below_one() const;
  bool has_fan_in() const { return fan_in_.has_value(); }
  const Schedule& schedule() const { return sparsity_; }

  /// The target sparsity at a step, clamped to [0, 1]; for a fan-in, that of `shape`.
  double sparsity_at(int64_t step, int64_t updates, const Shape& shape) const;

  /// Nonzeros per tensor at a step. With groups each tensor's is a multiple of the group count.
  /// *Errors:* ConfigError.
  std::vector<int64_t> nnz_at(int64_t step, int64_t updates, const std::vector<Shape>& shapes,
                              const Distribution& distribution, const ScoreGroups& groups) const;

 private:
  Schedule sparsity_;
  std::optional<double> density_;
  std::optional<double> fan_in_;
};

}  // namespace lacuna
