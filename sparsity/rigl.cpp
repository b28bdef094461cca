#include "lacuna/sparsity/rigl.h"

namespace lacuna {

bool RigL::wants_dense_gradient(int64_t step) const { return update_schedule().is_update(step); }

MaskSet RigL::grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) {
  return weight.selector().grow_maximum(gradient_rows(weight), count, kept);
}

}  // namespace lacuna
