// A parameter's slot (an optimizer's state, an average of the values) in a state dict.
#pragma once

#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// A copy of the slot as it is saved: for a compressed parameter, the pattern's elements, ascending
/// by flat index; in the parameter's shape if the parameter is stored so, or if the slot is dense.
Tensor slot_to_saved(const Parameter& parameter, const Slot& slot);

/// The possible shapes of a saved slot, for any layout that the parameter had then; the parameter's
/// shape is the first.
std::vector<Shape> shapes_of_saved_slot(const Parameter& parameter, bool requires_dense);

/// A saved slot aligned to the parameter's present pattern, or in its shape if the slot is
/// dense. *Requires* one of `shapes_of_saved_slot`, and the positions at the time of
/// saving.
Tensor slot_from_saved(const Parameter& parameter, const Tensor& saved, bool requires_dense);

}  // namespace lacuna
