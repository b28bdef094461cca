// Pattern: which positions of a weight exist. Immutable and shared.
#pragma once

#include <memory>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

class Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

/// The positions of a weight that are stored and trained, with the layout that stores them.
class Pattern {
 public:
  /// Every position.
  static PatternPtr dense(const Shape& shape);
  /// The positions whose bit is set. *Errors:* ShapeError when the sizes differ.
  static PatternPtr masked(const Shape& shape, BitMask mask);

  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return *layout_; }
  int64_t numel() const { return shape_.numel(); }
  int64_t nnz() const { return nnz_; }
  double density() const {
    return numel() == 0 ? 1.0 : static_cast<double>(nnz_) / static_cast<double>(numel());
  }
  int64_t stored_size() const { return layout_->stored_size(*this); }

  bool is_dense() const { return layout_ == &dense_layout(); }
  /// *Errors:* StateError when the pattern is dense and has none.
  const BitMask& mask() const;
  /// Bytes of the index data (the mask's words).
  int64_t index_bytes() const;

  Pattern(const Shape& shape, const Layout& layout, BitMask mask);

 private:
  Shape shape_;
  const Layout* layout_;
  BitMask mask_;
  int64_t nnz_;
};

}  // namespace lacuna
