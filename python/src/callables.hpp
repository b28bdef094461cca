// Python functions where a configuration takes a schedule.
#pragma once

#include "binding.hpp"

namespace lacuna::python {

/// As to_config, where a function f(step), or f(step, updates), may stand for a schedule: what is
/// made from the result calls it.
Config to_config_with_callables(const py::handle& value);

/// Registers the type of schedule that such a configuration names.
void bind_callables(py::module_& module);

}  // namespace lacuna::python
