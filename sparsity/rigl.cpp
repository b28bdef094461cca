#include "lacuna/sparsity/rigl.h"

#include "lacuna/sparsity/selection.h"

namespace lacuna {

bool RigL::wants_dense_gradient(int64_t step) const { return update_schedule().is_update(step); }

Positions RigL::grow_positions(const Parameter& parameter, const Positions& kept,
                               int64_t per_group) {
  const Competition selection = competition(parameter);
  return selection.grow_maximum(gradient_rows(parameter), per_group * selection.groups().count(),
                                kept);
}

}  // namespace lacuna
