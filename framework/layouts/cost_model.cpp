#include "lacuna/framework/layouts/cost_model.h"

namespace lacuna {

const Layout& choose_layout(const Shape& shape, int64_t nnz, int64_t /*batch*/) {
  const bool compressed = shape.rank() == 2 && nnz <= shape.numel() / 2;
  return compressed ? csr_layout() : masked_layout();
}

}  // namespace lacuna
