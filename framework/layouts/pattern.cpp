#include "lacuna/framework/layouts/pattern.h"

#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/flat.h"

namespace lacuna {

PatternPtr Pattern::dense(const Shape& shape) {
  return std::make_shared<const Pattern>(shape, dense_layout(), shape.numel(), nullptr);
}

PatternPtr Pattern::masked(const Shape& shape, const BitMask& mask) {
  if (mask.size() != shape.numel()) {
    throw ShapeError("a mask for shape " + shape.to_string() + " needs " +
                     std::to_string(shape.numel()) + " bits, found " + std::to_string(mask.size()));
  }
  return std::make_shared<const Pattern>(shape, masked_layout(), mask.count(),
                                         std::make_shared<const MaskIndex>(mask));
}

PatternPtr Pattern::make(const Layout& layout, const Shape& shape, const Positions& positions) {
  if (positions.rows() != matrix_rows(shape) || positions.columns() != matrix_columns(shape)) {
    throw ShapeError("a pattern of shape " + shape.to_string() + " was given positions of " +
                     std::to_string(positions.rows()) + " rows and " +
                     std::to_string(positions.columns()) + " columns");
  }
  return std::make_shared<const Pattern>(shape, layout, positions.count(),
                                         layout.index(shape, positions));
}

Pattern::Pattern(const Shape& shape, const Layout& layout, int64_t nnz,
                 std::shared_ptr<const PatternIndex> index)
    : shape_(shape), layout_(&layout), nnz_(nnz), index_(std::move(index)) {}

BitMask Pattern::mask() const {
  if (is_dense()) throw StateError("a dense pattern has no mask");
  if (const auto* masked = dynamic_cast<const MaskIndex*>(index())) return masked->mask;
  return positions().to_mask();
}

Tensor moved(const Pattern& from, const Tensor& array, const Pattern& to,
             std::span<const int32_t> places) {
  Tensor elements = Tensor::empty(Shape{from.nnz()});
  from.layout().compact(from, array.storage(), elements.mutable_storage());
  Tensor kept = Tensor::empty(Shape{to.nnz()});
  for (int64_t i = 0; i < to.nnz(); ++i) {
    const int32_t place = places[static_cast<size_t>(i)];
    kept.mutable_data()[i] = place < 0 ? 0.0f : elements.data()[place];
  }
  elements = Tensor();
  Tensor stored = Tensor::empty(to.is_flat() ? to.shape() : Shape{to.stored_size()});
  to.layout().expand(to, kept.storage(), stored.mutable_storage());
  return stored;
}

Tensor Layout::to_dense(const Pattern& pattern, std::span<const float> values) const {
  Tensor elements = Tensor::empty(Shape{pattern.nnz()});
  compact(pattern, values, elements.mutable_storage());
  Tensor dense = Tensor::zeros(pattern.shape());
  const float* next = elements.data();
  float* into = dense.mutable_data();
  positions(pattern).for_each([&](int64_t flat) { into[flat] = *next++; });
  return dense;
}

void Layout::from_dense(const Pattern& pattern, std::span<const float> dense,
                        std::span<float> values) const {
  Tensor elements = Tensor::empty(Shape{pattern.nnz()});
  float* next = elements.mutable_data();
  positions(pattern).for_each([&](int64_t flat) { *next++ = dense[static_cast<size_t>(flat)]; });
  expand(pattern, elements.storage(), values);
}

}  // namespace lacuna
