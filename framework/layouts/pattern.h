// Pattern: the positions of a weight that exist. Immutable and shared.
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

/// How long a weight keeps a pattern. If it is rechosen from a dense master weight at each step,
/// the weight gets a dense gradient, and derived data that takes long to build is not worth it.
enum class PatternLifetime { ManySteps, OneStep };

/// The positions of a weight that are stored and trained, with the layout that stores them.
class Pattern {
 public:
  /// Every position.
  static PatternPtr dense(const Shape& shape);
  /// The positions whose bits are set. *Errors:* ShapeError if the sizes differ.
  static PatternPtr masked(const Shape& shape, const BitMask& mask);
  /// Positions in any layout. *Errors:* ShapeError if they have another shape.
  static PatternPtr make(const Layout& layout, const Shape& shape, const Positions& positions,
                         PatternLifetime lifetime = PatternLifetime::ManySteps);
  /// The positions whose bits are set, in any layout. *Errors:* ShapeError if the sizes differ.
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
  /// Whether arrays aligned to it have the logical shape; otherwise they hold only the nonzeros, in
  /// the layout's order.
  bool stores_every_position() const { return is_dense() || layout_ == &masked_layout(); }
  /// Whether it was made from the other one by `with_lifetime`, so that arrays fit both.
  bool stores_as(const Pattern& other) const {
    return layout_ == other.layout_ && index_ == other.index_ && nnz_ == other.nnz_;
  }
  /// *Cost:* O(nnz).
  Positions positions() const { return layout_->positions(*this); }
  /// *Errors:* StateError if the pattern is dense and has none. *Memory:* one bit per position.
  BitMask mask() const;
  /// Bytes of the index data.
  int64_t index_bytes() const { return index_ == nullptr ? 0 : index_->bytes(); }
  /// The layout's index; null if it has none.
  const PatternIndex* index() const { return index_.get(); }
  /// The index as the type that the layout makes. *Errors:* StateError if it has another type.
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

/// Moves arrays aligned to one pattern to another's alignment: positions in both keep their
/// elements, others are zero. Computed once for all arrays of a parameter.
class PatternMove {
 public:
  /// `present` and `positions` are those of `from` and `to`. *Cost:* O(stored); 4 bytes for each
  /// element stored in `to`, and temporarily 8 for each element of either.
  PatternMove(const Pattern& from, const Pattern& to, const Positions& present,
              const Positions& positions);
  Tensor operator()(const Tensor& array) const;
  /// The number of positions in both.
  int64_t kept() const { return kept_; }

 private:
  int64_t kept_ = 0;
  Shape shape_;          // of moved arrays
  Array<float> source_;  // for each new element: 1 + its place in the old array, or 0, as bits
};

}  // namespace lacuna
