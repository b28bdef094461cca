// Masks as NumPy arrays of bool.
#pragma once

#include <string>

#include "binding.hpp"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna::python {

/// An array of bool, or of integers of which 0 alone is false. *Errors:* TypeError, and ShapeError
/// that begin with `what`.
MaskSet to_mask(const py::handle& given, const Shape& shape, const std::string& what);
py::array to_array(const MaskSet& mask);

/// Gives a parameter a mask as the updates of its algorithm do, if that is one of a class in
/// Python. *Returns* whether it is.
bool set_mask_by_own(const Parameter& parameter, const MaskSet& mask);

}  // namespace lacuna::python
