// CellRule: which units of one cell of an N:M pattern may be kept together (see
// config/pattern_shape.h).
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/random.h"

namespace lacuna {

/// Some units of a cell: bit i is unit i, row by row.
using CellBits = uint16_t;

/// What one cell of a pattern may hold, where its units are, and the best and random ways to fill
/// it.
class CellRule {
 public:
  /// `taps`: those of the weight (matrix_taps). *Requires* pattern.is_nm().
  explicit CellRule(const PatternShape& pattern, int64_t taps = 1);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  /// Columns from one unit of a cell's row to the next.
  int64_t taps() const { return taps_; }
  int size() const { return static_cast<int>(rows_ * columns_); }
  /// Units that a full cell keeps.
  int quota() const { return quota_; }
  CellBits all() const { return static_cast<CellBits>((1u << size()) - 1); }
  bool allows(CellBits kept) const;
  /// `kept` and those of `candidates` that add the largest scores, as far as the rule lets them in.
  /// Ties: the lower unit; among transposable patterns with the same sum the lower one as a number,
  /// or, where a tile is filled from nothing, what kernels/nm/nm_selection.hpp takes. NaN counts as
  /// nothing. *Requires* allows(kept), and scores that are not negative.
  CellBits best(CellBits kept, CellBits candidates, std::span<const float> scores) const;
  /// A full cell that holds `kept`, drawn uniformly, from words `index`, … of the sequence. A
  /// transposable tile that no full one holds gets what still fits.
  CellBits random(CellBits kept, const CounterRng& rng, uint64_t index) const;

  /// Words of the sequence that one draw may take.
  static constexpr uint64_t kWords = 16;

 private:
  CellBits best_transposable(CellBits kept, CellBits candidates,
                             std::span<const float> scores) const;

  bool transposable_;
  int64_t rows_, columns_, taps_;
  int quota_;
};

/// The 90 tiles of 4×4 with two units in each row and each column, ascending as numbers. *Source:*
/// Hubara et al., "Accelerated sparse neural training", 2021 (arXiv:2102.08124).
std::span<const CellBits> transposable_tiles();

}  // namespace lacuna
