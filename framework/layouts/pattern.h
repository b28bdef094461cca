// Pattern: which positions of a weight exist. Immutable and shared.
#pragma once

#include <memory>
#include <span>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

class Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

/// How long a weight has a pattern. one that is rechosen from a dense master weight at each
/// step gets a dense gradient, and nothing that takes long to make of it pays.
enum class PatternLifetime { ManySteps, OneStep };

/// The positions of a weight that are stored and trained, with the layout that stores them.
class Pattern {
 public:
  /// Every position.
  static PatternPtr dense(const Shape& shape);
  /// The positions whose bit is set. *Errors:* ShapeError when the sizes differ.
  static PatternPtr masked(const Shape& shape, const BitMask& mask);
  /// Positions in any layout. *Errors:* ShapeError when they are of another shape.
  static PatternPtr make(const Layout& layout, const Shape& shape, const Positions& positions,
                         PatternLifetime lifetime = PatternLifetime::ManySteps);
  /// The positions whose bit is set, in any layout. *Errors:* ShapeError when the sizes differ.
  static PatternPtr make(const Layout& layout, const Shape& shape, const BitMask& mask,
                         PatternLifetime lifetime = PatternLifetime::ManySteps);
  /// This pattern with another lifetime; the index is shared.
  PatternPtr with_lifetime(PatternLifetime lifetime) const;

  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return *layout_; }
  PatternLifetime lifetime() const { return lifetime_; }
  int64_t numel() const { return shape_.numel(); }
  int64_t nnz() const { return nnz_; }
  double density() const {
    return numel() == 0 ? 1.0 : static_cast<double>(nnz_) / static_cast<double>(numel());
  }
  int64_t stored_size() const { return layout_->stored_size(*this); }
  /// The shape of arrays aligned to it.
  Shape stored_shape() const { return stores_every_position() ? shape_ : Shape{stored_size()}; }

  bool is_dense() const { return layout_ == &dense_layout(); }
  /// Whether arrays aligned to it have the logical shape; otherwise they hold the nonzeros alone,
  /// in the layout's order.
  bool stores_every_position() const { return is_dense() || layout_ == &masked_layout(); }
  /// Whether it was made from the other one by `with_lifetime`, so that arrays fit both.
  bool stores_as(const Pattern& other) const {
    return layout_ == other.layout_ && index_ == other.index_ && nnz_ == other.nnz_;
  }
  /// *Cost:* O(nnz).
  Positions positions() const { return layout_->positions(*this); }
  /// *Errors:* StateError when the pattern is dense and has none. *Memory:* a bit a position.
  BitMask mask() const;
  /// Bytes of the index data.
  int64_t index_bytes() const { return index_ == nullptr ? 0 : index_->bytes(); }
  /// What the layout keeps; null when it keeps nothing.
  const PatternIndex* index() const { return index_.get(); }
  /// The index as the type that the pattern's layout makes. *Errors:* StateError when it is none.
  template <class Index>
  const Index& index_as() const {
    const auto* typed = dynamic_cast<const Index*>(index());
    if (typed == nullptr) refuse_index();
    return *typed;
  }

  Pattern(const Shape& shape, const Layout& layout, int64_t nnz,
          std::shared_ptr<const PatternIndex> index,
          PatternLifetime lifetime = PatternLifetime::ManySteps);

 private:
  [[noreturn]] void refuse_index() const;

  Shape shape_;
  const Layout* layout_;
  int64_t nnz_;
  std::shared_ptr<const PatternIndex> index_;
  PatternLifetime lifetime_;
};

/// Moves arrays that are aligned to one pattern to another's alignment: positions in both keep what
/// they have, others are zero. Worked out once for all arrays of a parameter.
class PatternMove {
 public:
  /// `present` and `positions` are those of `from` and of `to`. *Cost:* O(stored); 4 bytes for each
  /// element stored in `to`, and 8 for each of either while it is made.
  PatternMove(const Pattern& from, const Pattern& to, const Positions& present,
              const Positions& positions);
  Tensor operator()(const Tensor& array) const;
  /// Positions that are in both.
  int64_t kept() const { return kept_; }

 private:
  int64_t kept_ = 0;
  Shape shape_;          // of moved arrays
  Array<float> source_;  // of each new element: 1 + where it is in the old array, or 0, as bits
};

}  // namespace lacuna
