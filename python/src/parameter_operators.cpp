// Operators between Parameters and arrays, numbers or Variables.
#include <algorithm>
#include <string>
#include <utility>

#include "binding.hpp"
#include "handles.hpp"
#include "numpy_functions.hpp"

namespace lacuna::python {
namespace {

thread_local CodeOf current_code = CodeOf::Script;

py::object array_of(const py::handle& value) {
  if (!py::isinstance<Parameter>(value)) return py::reinterpret_borrow<py::object>(value);
  return value.attr("__array__")();
}

bool is_of_numpy(const py::object& value) {
  return !py::isinstance<Parameter>(value) && !py::isinstance<Variable>(value) &&
         py::hasattr(value, "dtype");
}

// With an array, a script gets an array.
bool gives_array(const py::object& a, const py::object& b) {
  if (current_code == CodeOf::Script) return is_of_numpy(a) || is_of_numpy(b);
  return current_code == CodeOf::Algorithm;
}

bool has_trainable(const py::args& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const py::handle& input) {
    return py::isinstance<Parameter>(input) && input.cast<const Parameter&>().trainable;
  });
}

py::object compute(const std::string& name, const py::object& a, const py::object& b) {
  if (gives_array(a, b)) {
    return py::module_::import("numpy").attr(name.c_str())(array_of(a), array_of(b));
  }
  return py::cast(operate(name, a, b));
}

// What NumPy calls instead of a function of its own, also for an operator with an array on its
// left.
py::object answer_numpy(const py::object& function, const std::string& method,
                        const py::args& inputs, const py::kwargs& options) {
  const auto name = function.attr("__name__").cast<std::string>();
  const bool is_call = method == "__call__" && options.empty();
  if (is_call && is_operation(name)) return compute(name, inputs[0], inputs[1]);
  if (current_code == CodeOf::Module && grad_enabled() && !gives_truth(name) &&
      has_trainable(inputs)) {
    throw py::type_error("numpy." + name +
                         " records no gradient of a Parameter: use lacuna's own operations, or "
                         "take its values with .to_numpy()");
  }
  return call_with_arrays<Parameter>(function, method, inputs, options, array_of);
}

}  // namespace

CodeScope::CodeScope(CodeOf code) : before_(std::exchange(current_code, code)) {}
CodeScope::~CodeScope() { current_code = before_; }

void bind_parameter_operators(py::module_& module) {
  auto parameter = py::class_<Parameter, ParameterPtr>(module.attr("Parameter"));
  const auto add_operator = [&](const char* method, const char* name, bool is_reversed) {
    parameter.def(
        method,
        [name, is_reversed](const py::object& self, const py::object& other) {
          return is_reversed ? compute(name, other, self) : compute(name, self, other);
        },
        py::is_operator());
  };
  add_operator("__add__", "add", false);
  add_operator("__radd__", "add", true);
  add_operator("__sub__", "subtract", false);
  add_operator("__rsub__", "subtract", true);
  add_operator("__mul__", "multiply", false);
  add_operator("__rmul__", "multiply", true);
  add_operator("__matmul__", "matmul", false);
  add_operator("__rmatmul__", "matmul", true);
  parameter.def("__neg__",
                [](const py::object& self) { return compute("multiply", self, py::float_(-1.0)); });
  parameter.def(
      "__truediv__",
      [](const py::object& self, double divisor) {
        return compute("multiply", self, py::float_(1.0 / divisor));
      },
      py::is_operator());
  parameter.def("__array_ufunc__",
                [](const Parameter&, const py::object& function, const std::string& method,
                   const py::args& inputs, const py::kwargs& options) {
                  return answer_numpy(function, method, inputs, options);
                });
}

}  // namespace lacuna::python
