// A parameter's slot (an optimizer's state, an average of the values) as a state dict holds it.
#pragma once

#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// A copy of the slot as it is saved: of a compressed parameter the pattern's elements, ascending
/// by flat index; in the parameter's shape where the parameter is stored so, or the slot is dense.
Tensor slot_to_saved(const Parameter& parameter, const Slot& slot);

/// The shapes that a saved slot may have, whichever layout the parameter had then: the parameter's
/// first.
std::vector<Shape> shapes_of_saved_slot(const Parameter& parameter, bool requires_dense);

/// A saved slot in the alignment of the parameter's present pattern, or in its shape where the slot
/// is dense. *Requires* one of `shapes_of_saved_slot`, and the positions that were there when it
/// was saved.
Tensor slot_from_saved(const Parameter& parameter, const Tensor& saved, bool requires_dense);

}  // namespace lacuna
