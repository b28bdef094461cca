// The keywords of algorithms' classes, as the keys of a configuration's entry.
#include <memory>
#include <string>
#include <vector>

#include "callables.hpp"
#include "handles.hpp"
#include "parameter_arrays.hpp"
#include "sparsity_binding.hpp"

namespace lacuna::python {
namespace {

// A frequency, or a list of steps, as a configuration has it.
py::object update_schedule_of(const py::object& given) {
  py::dict schedule;
  if (py::isinstance<py::int_>(given) && !py::isinstance<py::bool_>(given)) {
    schedule["freq"] = given;
  } else if (py::isinstance<py::list>(given) || py::isinstance<py::tuple>(given)) {
    schedule["steps"] = py::list(given);
  } else {
    return given;
  }
  return py::object(schedule);
}

}  // namespace

py::object named_parameter(const py::object& parameter) {
  return py::module_::import("lacuna.names").attr("ParameterName")(parameter);
}

AlgorithmKeys::AlgorithmKeys(const py::object& sparsity, const py::kwargs& keywords) {
  py::dict keys(keywords);
  if (!sparsity.is_none()) keys["sparsity"] = sparsity;
  const auto take = [&](const char* name, py::object* into) {
    if (!keys.contains(name) || !is_function(keys[name])) return;
    *into = keys[name];
    PyDict_DelItemString(keys.ptr(), name);
  };
  take("init_method", &init_method);
  take("param_filter", &param_filter);
  if (keys.contains("seed")) {
    seed = keys["seed"].cast<uint64_t>();
    PyDict_DelItemString(keys.ptr(), "seed");
  }
  if (keys.contains("update")) keys["update"] = update_schedule_of(keys["update"]);
  entry = to_config_with_callables(keys);
  if (entry.is_null()) entry = Config::map();
}

void AlgorithmKeys::put_functions_into(SparsityOptions& options) const {
  if (!init_method.is_none()) {
    options.init_method = InitMethod([kept = keep(init_method)](const MaskInitRequest& request) {
      const AlgorithmCode code;
      const auto function =
          py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(kept.get())));
      const std::string what = "init_method for '" + request.parameter.name() + "'";
      return to_mask(function(to_array(request.parameter.to_dense()), request.sparsity),
                     request.parameter.shape(), what);
    });
  }
  if (!param_filter.is_none()) options.param_filter = to_filter(param_filter);
}

ParameterFilter to_filter(const py::object& given) {
  if (py::isinstance<py::str>(given)) return ParameterFilter({given.cast<std::string>()});
  if (given.is_none()) return {};
  if (!PyCallable_Check(given.ptr()))
    return ParameterFilter(given.cast<std::vector<std::string>>());
  return ParameterFilter([kept = keep(given)](const std::string& name, const Parameter& parameter) {
    const AlgorithmCode code;
    const auto function =
        py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    return function(name, known_parameter(parameter)).cast<bool>();
  });
}

}  // namespace lacuna::python
