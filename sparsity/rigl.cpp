#include "lacuna/sparsity/rigl.h"

#include "lacuna/sparsity/selection.h"

namespace lacuna {

bool RigL::wants_dense_gradient(int64_t step) const { return update_schedule().is_update(step); }

BitMask RigL::grow(const Parameter& parameter, const BitMask& mask, int64_t per_group) {
  return grow_maximum(magnitudes(dense_gradient(parameter).storage()), per_group, mask,
                      groups(parameter));
}

}  // namespace lacuna
