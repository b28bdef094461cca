#include "lacuna/framework/param/gradient_collector.h"

#include "lacuna/framework/kernels/pointwise/elementwise.hpp"

namespace lacuna {

GradientCollector::~GradientCollector() = default;

void JoinTensors::operator()(Tensor& left, Tensor&& right) const {
  if (!left.unique()) left = left.clone();
  accumulate(right.storage(), left.mutable_storage());
}

}  // namespace lacuna
