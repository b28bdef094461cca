#include "lacuna/framework/layouts/pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/row_match.hpp"

namespace lacuna {

PatternPtr Pattern::dense(const Shape& shape) {
  return std::make_shared<const Pattern>(shape, dense_layout(), shape.numel(), nullptr);
}

PatternPtr Pattern::masked(const Shape& shape, const BitMask& mask) {
  return make(masked_layout(), shape, mask);
}

PatternPtr Pattern::make(const Layout& layout, const Shape& shape, const BitMask& mask,
                         PatternLifetime lifetime) {
  if (mask.size() != shape.numel()) {
    throw ShapeError(fmt::format("a mask for shape {} needs {} bits, found {}", shape.to_string(),
                                 shape.numel(), mask.size()));
  }
  return std::make_shared<const Pattern>(shape, layout, mask.count(),
                                         layout.make_index_of_mask(shape, mask), lifetime);
}

PatternPtr Pattern::make(const Layout& layout, const Shape& shape, const Positions& positions,
                         PatternLifetime lifetime) {
  if (positions.rows() != matrix_rows(shape) || positions.columns() != matrix_columns(shape)) {
    throw ShapeError(
        fmt::format("a pattern of shape {} was given positions of {} rows and {} columns",
                    shape.to_string(), positions.rows(), positions.columns()));
  }
  return std::make_shared<const Pattern>(shape, layout, positions.count(),
                                         layout.make_index(shape, positions), lifetime);
}

PatternPtr Pattern::with_lifetime(PatternLifetime lifetime) const {
  return std::make_shared<const Pattern>(shape_, *layout_, nnz_, index_, lifetime);
}

Pattern::Pattern(const Shape& shape, const Layout& layout, int64_t nnz,
                 std::shared_ptr<const PatternIndex> index, PatternLifetime lifetime)
    : shape_(shape), layout_(&layout), nnz_(nnz), index_(std::move(index)), lifetime_(lifetime) {}

void Pattern::refuse_index() const {
  throw StateError("the index of a pattern of shape " + shape_.to_string() + " in layout '" +
                   std::string(layout_->name()) + "' has a different type than requested");
}

BitMask Pattern::mask() const {
  if (is_dense()) throw StateError("a dense pattern has no mask");
  if (const BitMask* bits = index() == nullptr ? nullptr : index()->mask()) return *bits;
  return positions().to_mask();
}

// Layouts copy floats between storage and elements; here the floats hold the bits of integers,
// which copying does not change.
PatternMove::PatternMove(const Pattern& from, const Pattern& to, const Positions& present,
                         const Positions& positions)
    : shape_(to.stores_every_position() ? to.shape() : Shape{to.stored_size()}),
      source_(static_cast<size_t>(to.stored_size())) {
  Array<float> numbers(static_cast<size_t>(from.nnz()));  // 1 + an element's stored place, as bits
  {
    Array<float> stored(static_cast<size_t>(from.stored_size()));
    for (size_t i = 0; i < stored.size(); ++i) {
      stored[i] = std::bit_cast<float>(static_cast<uint32_t>(i) + 1);
    }
    from.layout().compact(from, stored, numbers);
  }
  Array<float> found(static_cast<size_t>(to.nnz()));
  RowMatch match(positions.columns());
  for (int64_t r = 0; r < positions.rows(); ++r) {
    const auto row = static_cast<size_t>(r);
    const float* from_row = numbers.data() + present.row_begin()[row];
    float* found_row = found.data() + positions.row_begin()[row];
    match(
        present.row(r), [&](size_t i) { return std::bit_cast<uint32_t>(from_row[i]); },
        positions.row(r),
        [&](size_t k, uint32_t number) {
          found_row[k] = std::bit_cast<float>(number);
          kept_ += number != 0 ? 1 : 0;
        });
  }
  numbers = {};
  to.layout().expand(to, found, source_);
}

Tensor PatternMove::operator()(const Tensor& array) const {
  if (array.numel() == 0) return Tensor::zeros(shape_);  // below, the first element is always read
  constexpr size_t kBlock = 8, kAhead = 256;
  Tensor moved = Tensor::empty(shape_);
  const float* from = array.storage().data();
  float* into = moved.mutable_storage().data();
  const auto source_of = [&](size_t i) { return std::bit_cast<uint32_t>(source_[i]); };
  for (size_t begin = 0; begin < source_.size(); begin += kBlock) {
    // Rows are ordered differently than in the old array, so the hardware does not prefetch
    // them.
    if (begin + kAhead < source_.size()) __builtin_prefetch(from + source_of(begin + kAhead));
    for (size_t i = begin, end = std::min(begin + kBlock, source_.size()); i < end; ++i) {
      const uint32_t source = source_of(i);
      // A third of the branches "is it new?" would be mispredicted: 20 times the other cost.
      const uint32_t is_old = source == 0 ? 0 : 1;
      const auto bits = std::bit_cast<uint32_t>(from[source - is_old]);
      into[i] = std::bit_cast<float>(bits & (0u - is_old));
    }
  }
  return moved;
}

}  // namespace lacuna
