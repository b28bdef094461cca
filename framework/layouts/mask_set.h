// MaskSet: the positions of a parameter that exist, as bits or row by row.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

class Pattern;

/// A set of positions of a shape: a mask. It keeps the form in which it was made, one bit per
/// position (BitMask), positions row by row (Positions) or a pattern, and converts to another form
/// when that is first requested. Immutable; copies share converted forms.
class MaskSet {
 public:
  /// The empty set of a 0 × 0 matrix.
  MaskSet() : MaskSet(Shape{0, 0}) {}
  /// The empty set of a shape.
  explicit MaskSet(const Shape& shape) : MaskSet(shape, Positions(shape)) {}
  /// *Errors:* ShapeError if the mask has another size than the shape.
  MaskSet(const Shape& shape, BitMask bits);
  /// A mask whose shape is given later: `of_shape` sets it.
  MaskSet(BitMask bits);  // NOLINT: bits are a mask
  /// *Errors:* ShapeError if the positions belong to another matrix.
  MaskSet(const Shape& shape, Positions positions);
  /// The positions of a pattern. *Cost:* none until one of their forms is requested.
  explicit MaskSet(std::shared_ptr<const Pattern> pattern);
  /// Every position of a shape.
  static MaskSet all(const Shape& shape);

  const Shape& shape() const { return shape_; }
  /// Positions of the shape, in the set or not.
  int64_t size() const { return shape_.numel(); }
  /// Positions in the set.
  int64_t count() const { return count_; }
  /// Whether a position is in the set. *Cost:* O(log of the row's count) for a set held by rows.
  bool test(int64_t flat) const {
    return bits_ != nullptr ? bits_->test(flat) : positions().contains(flat);
  }
  /// Whether it is stored as one bit per position, so that `bits()` converts nothing.
  bool has_bits() const { return bits_ != nullptr; }
  /// Whether it is stored row by row, so that `positions()` converts nothing.
  bool has_positions() const { return positions_ != nullptr; }

  /// The same bits as a mask of another shape. *Errors:* ShapeError when the sizes differ;
  /// StateError above 2^32 positions.
  MaskSet of_shape(const Shape& shape) const;

  /// One bit per position of the shape. *Errors:* StateError above 2^32 positions.
  const BitMask& bits() const;
  /// The positions, row by row. *Cost:* O(count) time, from bits also O(shape / 64); 4 bytes per
  /// position and 8 per row.
  const Positions& positions() const;

  /// Whether its maker states that it has this whole pattern, so that no check is needed.
  bool is_known_to_have(const PatternShape& pattern) const {
    return known_.is_structured() && known_ == pattern;
  }
  /// This mask, known to have a pattern. *Requires* that it has.
  MaskSet known_to_have(const PatternShape& pattern) const;

  /// Whether two hold the same positions of the same shape.
  friend bool operator==(const MaskSet& a, const MaskSet& b);

 private:
  Shape shape_;
  int64_t count_;
  PatternShape known_;                      // the pattern that it is known to have
  std::shared_ptr<const Pattern> pattern_;  // null if it was not made from one
  // Converted on first use: not thread-safe.
  mutable std::shared_ptr<const BitMask> bits_;
  mutable std::shared_ptr<const Positions> positions_;
};

/// The number of positions that two sets of one shape have in common. *Cost:* O(both counts), or
/// O(shape / 64) if one is stored only as bits.
int64_t count_common(const MaskSet& a, const MaskSet& b);

/// Outputs and inputs without a nonzero: rows (dimension 0) and columns that have no position of a
/// set. For a convolution's weight, an input is a channel (dimension 1) with all its taps.
struct DeadLines {
  int64_t rows = 0, columns = 0;
  friend bool operator==(const DeadLines&, const DeadLines&) = default;
};
/// *Cost:* O(count) for a set stored by rows, O(shape / 64) for one stored only as bits.
DeadLines dead_lines(const MaskSet& mask);

}  // namespace lacuna
