// The default implementations of a layout.
#include "lacuna/framework/layouts/layout.h"

#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {

std::shared_ptr<const PatternIndex> StorageFormat::make_index_of_mask(const Shape& shape,
                                                                      const BitMask& mask) const {
  return make_index(shape, Positions::of(shape, mask));
}

Tensor StorageFormat::to_dense(const Pattern& pattern, std::span<const float> values) const {
  Tensor elements = Tensor::empty(Shape{pattern.nnz()});
  compact(pattern, values, elements.mutable_storage());
  Tensor dense = Tensor::zeros(pattern.shape());
  const float* next = elements.data();
  float* into = dense.mutable_data();
  positions(pattern).for_each([&](int64_t flat) { into[flat] = *next++; });
  return dense;
}

void StorageFormat::from_dense(const Pattern& pattern, std::span<const float> dense,
                               std::span<float> values) const {
  Tensor elements = Tensor::empty(Shape{pattern.nnz()});
  float* next = elements.mutable_data();
  positions(pattern).for_each([&](int64_t flat) { *next++ = dense[static_cast<size_t>(flat)]; });
  expand(pattern, elements.storage(), values);
}

}  // namespace lacuna
