#include "lacuna/framework/layouts/pattern.h"

#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

PatternPtr Pattern::dense(const Shape& shape) {
  return std::make_shared<const Pattern>(shape, dense_layout(), BitMask());
}

PatternPtr Pattern::masked(const Shape& shape, BitMask mask) {
  if (mask.size() != shape.numel()) {
    throw ShapeError("a mask for shape " + shape.to_string() + " needs " +
                     std::to_string(shape.numel()) + " bits, found " + std::to_string(mask.size()));
  }
  return std::make_shared<const Pattern>(shape, masked_layout(), std::move(mask));
}

Pattern::Pattern(const Shape& shape, const Layout& layout, BitMask mask)
    : shape_(shape),
      layout_(&layout),
      mask_(std::move(mask)),
      nnz_(&layout == &dense_layout() ? shape.numel() : mask_.count()) {}

const BitMask& Pattern::mask() const {
  if (is_dense()) throw StateError("a dense pattern has no mask");
  return mask_;
}

int64_t Pattern::index_bytes() const {
  return static_cast<int64_t>(mask_.words().size() * sizeof(uint64_t));
}

}  // namespace lacuna
