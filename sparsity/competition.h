// Competition: how positions of one parameter are kept, dropped and grown, as its score groups and
// its structure allow.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/random.h"
#include "lacuna/sparsity/cells.h"
#include "lacuna/sparsity/score_groups.h"
#include "lacuna/sparsity/selection.h"
#include "lacuna/sparsity/structure.h"

namespace lacuna {

/// The selections of selection.h for one shape. With a structure its units compete, whole blocks or
/// columns of a group of rows, by the sum of their positions' scores; in an N:M pattern every cell
/// (M units) keeps N at most, and growth fills the cells that have room. All counts are of
/// positions, of all groups together, and multiples of `unit_size`.
class Competition {
 public:
  /// *Requires* that groups and structure fit the shape; not both.
  Competition(const ScoreGroups& groups, const Structure& structure, const Shape& shape);

  const GroupIndex& groups() const { return groups_; }
  /// Positions that a fraction to drop leaves of `nnz`, in whole units of each group.
  int64_t kept_after_drop(float drop_fraction, int64_t nnz) const;

  /// The `count` present positions with the largest scores. From a pattern that is fuller than the
  /// structure allows, no more than it allows. *Cost:* O(present).
  Positions keep(const Positions& present, std::span<const float> scores, int64_t count) const;
  /// The same, but an N:M pattern is approached cell by cell: those whose pruning loses the least
  /// first, until `count` are left; the other cells stay full. What gradual pruning does.
  Positions thin(const Positions& present, std::span<const float> scores, int64_t count) const;
  /// `present` and the others with the largest |score|, until there are `count`; in an N:M pattern,
  /// until its cells are full. *Cost:* O(shape) time, O(present + count) memory.
  Positions grow_maximum(const ScoreRows& scores, int64_t count, const Positions& present) const;
  /// The same at random, uniformly: in an N:M pattern uniformly in each cell.
  Positions grow_random(const CounterRng& rng, int64_t count, const Positions& present) const;

  /// Whether positions have the structure. An N:M pattern that gradual pruning is on its way to has
  /// it in part: some of its cells are full still.
  enum class Fit { None, Partial, Whole };
  Fit fit(const Positions& positions) const;
  /// *Errors:* always; ConfigError that names `parameter` and the place where positions that do not
  /// fit as a whole leave the structure.
  [[noreturn]] void refuse(const std::string& parameter, const Positions& positions) const;

 private:
  CellPlace misfit(const Positions& positions, bool* partial) const;

  Structure structure_;
  GroupIndex groups_;  // of units
  int64_t unit_;
};

}  // namespace lacuna
