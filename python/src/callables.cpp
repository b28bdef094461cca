// Schedules that are Python functions. Within a configuration each is a map {type: python_function,
// number: N}; the functions are kept by their numbers for as long as the process lives.
#include "callables.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "lacuna/framework/config/schedule.h"

namespace lacuna::python {
namespace {

constexpr const char* kType = "python_function";

using Function = std::function<double(int64_t step, int64_t updates)>;

std::map<int64_t, Function>& functions() {
  static auto* all = new std::map<int64_t, Function>;
  return *all;
}

// Whether a function takes the number of updates, too.
bool takes_updates(const py::object& function) { return required_arguments(function) > 1; }

// Held by `keep`: a registry ends after the interpreter, when there is no GIL to take any more.
Function as_function(const py::object& callable) {
  return [kept = keep(callable), takes_both = takes_updates(callable)](int64_t step,
                                                                       int64_t updates) {
    const py::gil_scoped_acquire gil;
    const auto function =
        py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    const py::object value = takes_both ? function(step, updates) : function(step);
    return value.cast<double>();
  };
}

py::object number_functions(const py::handle& value, int depth = 0) {
  // What is nested deeper holds itself, which to_config says.
  if (++depth > 100) return py::reinterpret_borrow<py::object>(value);
  if (py::isinstance<py::dict>(value)) {
    py::dict numbered;
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(value)) {
      numbered[key] = number_functions(item, depth);
    }
    return numbered;
  }
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    py::list numbered;
    for (const py::handle item : value) numbered.append(number_functions(item, depth));
    return numbered;
  }
  if (!is_function(value)) return py::reinterpret_borrow<py::object>(value);
  const auto number = static_cast<int64_t>(functions().size());
  functions()[number] = as_function(py::reinterpret_borrow<py::object>(value));
  py::dict entry;
  entry["type"] = kType;
  entry["number"] = number;
  return entry;
}

Schedule make_schedule(const Config& config) {
  const auto found = functions().find(config.required<int64_t>("number"));
  if (found == functions().end()) config.at("number").error("no such function in this process");
  const Function function = found->second;
  return Schedule(
      [function](int64_t step, int64_t updates) {
        return static_cast<float>(function(step, updates));
      },
      config);
}

}  // namespace

size_t required_arguments(const py::object& function) {
  const auto inspect = py::module_::import("inspect");
  try {
    size_t count = 0;
    const py::object parameter = inspect.attr("Parameter");
    const py::object parameters = inspect.attr("signature")(function).attr("parameters");
    for (const py::handle one : parameters.attr("values")()) {
      const py::object kind = one.attr("kind");
      if (kind.equal(parameter.attr("POSITIONAL_ONLY")) ||
          kind.equal(parameter.attr("POSITIONAL_OR_KEYWORD"))) {
        if (one.attr("default").is(parameter.attr("empty"))) ++count;
      }
    }
    return count;
  } catch (py::error_already_set& error) {  // a function of C, which has no signature
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    return 0;
  }
}

bool is_function(const py::handle& value) {
  const bool is_value =
      PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) || PyUnicode_Check(value.ptr());
  return !is_value && PyCallable_Check(value.ptr()) != 0;
}

Config to_config_with_callables(const py::handle& value) {
  return to_config(number_functions(value));
}

void bind_callables(py::module_& module) {
  schedule_registry().add(kType, "a function of a Python program", make_schedule);
  module.def(
      "_register_schedule",
      [](const std::string& name, const py::object& callable) {
        const Function function = as_function(callable);
        schedule_registry().add(name, "a function of a Python program",
                                [function](const Config& config) {
                                  return Schedule(
                                      [function](int64_t step, int64_t updates) {
                                        return static_cast<float>(function(step, updates));
                                      },
                                      config);
                                });
      },
      py::arg("name"), py::arg("function"));
}

}  // namespace lacuna::python
