// MaskSelector: selects the positions of one parameter that are kept, dropped and grown, within its
// score groups and its pattern.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/sparsity/masks/scores.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// Exact selections among the positions of one shape. With a pattern, its units compete (whole
/// blocks, or columns of a group of rows) by the sum of their positions' |score|; in an N:M pattern
/// every cell (M units) keeps at most N, and growth fills the cells that have room. All counts are
/// of positions, over all groups, and multiples of the unit's size. Ties go to the lower flat index
/// of a unit's or a cell's first position, NaN ranks below everything, and positions that a mask
/// excludes are never chosen. *Errors:* ShapeError if a count is negative; too large ones mean all.
class MaskSelector {
 public:
  /// *Requires* that groups and pattern fit the shape, and that at most one of them is given.
  MaskSelector(const ScoreGroups& groups, const PatternShape& pattern, const Shape& shape);

  const Shape& shape() const { return shape_; }
  const PatternShape& pattern() const { return pattern_; }
  const GroupIndex& groups() const { return groups_; }
  /// Positions that a fraction to drop leaves of `nnz`, in whole units of each group.
  int64_t kept_after_drop(float drop_fraction, int64_t nnz) const;

  /// The `count` present positions with the largest scores, one score per present position,
  /// ascending by flat index. If the mask is fuller than the pattern allows, at most as many as it
  /// allows. *Errors:* ShapeError if the number of scores differs. *Cost:* O(present).
  MaskSet keep(const MaskSet& present, std::span<const float> scores, int64_t count) const;
  /// Keeps `count` as gradual pruning does: an N:M pattern is approached cell by cell, starting
  /// with those whose pruning loses the least; the other cells stay full. Without a pattern, as
  /// `keep`.
  MaskSet prune_gradually(const MaskSet& present, std::span<const float> scores,
                          int64_t count) const;
  /// `present` and the others with the largest |score|, until there are `count`; in an N:M pattern,
  /// until its cells are full. Collective if processes share the scores. *Cost:* O(shape) time,
  /// O(present + count) memory; each process sends its part of the scores once, and its share of
  /// the grown positions to each other process.
  MaskSet grow_maximum(const Scores& scores, int64_t count, const MaskSet& present) const;
  /// `present` and others drawn uniformly, until there are `count`; in an N:M pattern drawn
  /// uniformly in each cell, until it is full.
  MaskSet grow_random(const CounterRng& rng, int64_t count, const MaskSet& present) const;
  /// `kept` with a random position added in each row and each column (input channel) that has none:
  /// empty rows meet empty columns first. No group gets more than its part of `count`. *Requires*
  /// no pattern.
  MaskSet revive_empty(const CounterRng& rng, int64_t count, const MaskSet& kept) const;
  /// The kept positions of a dense matrix without a previous mask, chosen by kernels that are fast
  /// enough for every step: in N:M patterns the N largest |w| of each cell, in block patterns the
  /// `count` positions in the blocks of largest norm. *Requires* a pattern. *Cost:* one pass over
  /// the matrix, and one over the mask; memory for the units' scores.
  MaskSet largest(const Tensor& matrix, int64_t count) const;

  /// Whether positions have the pattern. During gradual pruning to an N:M pattern they have it only
  /// in part: some cells are still full.
  enum class Fit { None, Partial, Whole };
  Fit fit(const MaskSet& mask) const;
  /// *Errors:* always ConfigError: names `parameter` and the position at which a mask violates the
  /// pattern.
  [[noreturn]] void refuse(const std::string& parameter, const MaskSet& mask) const;

 private:
  /// The top row and left column of a cell, in units.
  struct Place {
    int64_t row = -1, column = -1;
  };
  Place misfit(const MaskSet& mask, bool* partial) const;
  int64_t units_per_group(int64_t count) const;
  Positions units_of(const MaskSet& mask) const;
  MaskSet of_units(const Positions& units) const;

  Shape shape_;
  int64_t taps_;
  PatternShape pattern_;
  GroupIndex groups_;  // of units
};

}  // namespace lacuna
