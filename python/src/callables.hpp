// Python functions where a configuration takes a schedule.
#pragma once

#include "binding.hpp"

namespace lacuna::python {

/// As to_config, where a function f(step), or f(step, updates), may stand for a schedule: what is
/// made from the result calls it.
Config to_config_with_callables(const py::handle& value);

/// For a run that is resumed with its configuration given again: where both hold a function at the
/// same path, and the run's is one of another process, the given one takes its place. `given` then
/// holds the run's entries.
void take_functions_for(const Config& run, Config& given);

/// The positional arguments that a function cannot do without; 0 where it does not tell.
size_t required_arguments(const py::object& function);

/// Whether it is a function; not a number or a text that may be called.
bool is_function(const py::handle& value);

/// Registers the type of schedule that such a configuration names.
void bind_callables(py::module_& module);

}  // namespace lacuna::python
