// What classes do with NumPy's universal functions, which call their __array_ufunc__.
#pragma once

#include <set>
#include <string>

#include "binding.hpp"
#include "lacuna/framework/autograd/variable.h"

namespace lacuna::python {

/// Whether a universal function is an operation of Variables: add, subtract, multiply, matmul.
bool is_operation(const std::string& name);
/// Computes that operation, of Variables, Parameters and arrays.
Variable operate(const std::string& name, const py::handle& a, const py::handle& b);

/// Whether a universal function gives truth values, which have no gradient.
inline bool gives_truth(const std::string& name) {
  static const std::set<std::string> kNames = {
      "isfinite",    "isnan",      "isinf",       "signbit",    "equal",
      "not_equal",   "less",       "less_equal",  "greater",    "greater_equal",
      "logical_and", "logical_or", "logical_xor", "logical_not"};
  return kNames.contains(name);
}

/// Calls a universal function with arrays in place of objects of class Own. `array_of`: that of
/// such an object. *Errors:* TypeError for such an object as `out`.
template <class Own, class ArrayOf>
py::object call_with_arrays(const py::object& function, const std::string& method,
                            const py::args& inputs, const py::kwargs& options,
                            const ArrayOf& array_of) {
  const auto convert = [&](const py::handle& value) {
    return py::isinstance<Own>(value) ? py::object(array_of(value))
                                      : py::reinterpret_borrow<py::object>(value);
  };
  py::tuple arrays(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) arrays[i] = convert(inputs[i]);
  py::dict others;
  for (const auto& [key, value] : options) {
    if (key.template cast<std::string>() == "out") {  // a tuple
      for (const py::handle out : value) {
        if (!py::isinstance<Own>(out)) continue;
        throw py::type_error("numpy." + function.attr("__name__").cast<std::string>() +
                             ": give an array as out, not a " +
                             py::str(py::type::of<Own>().attr("__name__")).cast<std::string>());
      }
    }
    others[key] = convert(value);
  }
  return function.attr(method.c_str())(*arrays, **others);
}

}  // namespace lacuna::python
