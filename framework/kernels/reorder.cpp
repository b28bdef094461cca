#include "lacuna/framework/kernels/reorder.h"

namespace lacuna {

Tensor reordered(const Tensor& tensor, Order order) { return tensor.to(order); }

}  // namespace lacuna
