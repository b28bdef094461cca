#include "lacuna/sparsity/dense_gradient.h"

namespace lacuna {

void DenseGradient::observe(const Tensor& gradient) {
  if (!sum_.defined()) {
    sum_ = gradient;
    return;
  }
  if (!sum_.unique()) sum_ = sum_.clone();
  const std::span<float> into = sum_.mutable_storage();
  const std::span<const float> from = gradient.storage();
  for (size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

}  // namespace lacuna
