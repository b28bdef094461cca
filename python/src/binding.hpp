// What the sources of the Python module share: the conversions of values, and the function by which
// each source adds its part to the module.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::python {

namespace py = pybind11;

/// For functions that compute: other Python threads run meanwhile.
using ReleaseGil = py::call_guard<py::gil_scoped_release>;

/// Keeps a Python object alive from C++, and lets it go with the GIL held, from any thread.
std::shared_ptr<const void> keep(py::object object);

/// Dicts, lists, numbers, texts, None, and NumPy's scalars and arrays of rank 0 or 1.
/// *Errors:* TypeError that names the key.
Config to_config(const py::handle& value);
py::object from_config(const Config& config);
/// A file's name (str or os.PathLike) is read as YAML; all else is converted.
Config read_config(const py::handle& source);

/// An array of NumPy's, of anything that is one.
py::array as_array(const py::handle& value);
/// An array of floats. A C-ordered float32 array is shared, others are copied. Takes what NumPy
/// takes, and what has __dlpack__. *Errors:* TypeError.
Tensor to_tensor(const py::handle& array);
/// An array of integers. *Errors:* TypeError unless its numbers are integers.
IndexTensor to_index_tensor(const py::handle& array);
/// An array over the tensor's memory, which it keeps alive; of another storage order a copy.
py::array to_array(const Tensor& tensor);
py::array to_array(const IndexTensor& tensor);
/// An array over memory that `owner` keeps alive.
py::array array_over(const float* data, const Shape& shape, const py::object& owner);
py::tuple to_tuple(const Shape& shape);
Shape to_shape(const py::handle& sizes);

py::dict to_dict(const StateDict& state);
StateDict to_state_dict(const py::dict& state);

/// What call() returns; a mistake in its arguments is one of the configuration there. *Errors:*
/// ConfigError.
template <class Call>
auto calling_for(const Config& there, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (py::error_already_set& error) {
    const py::object config_error = py::module_::import("lacuna._lacuna").attr("ConfigError");
    if (!error.matches(config_error) && !error.matches(PyExc_TypeError)) throw;
    there.error(py::str(error.value()).cast<std::string>());
  }
}

void bind_errors(py::module_& module);
/// To be called when all classes are there: objects of subclasses that have not called
/// super().__init__() are refused with TypeError.
void refuse_unmade_objects(const py::module_& module);
void bind_core(py::module_& module);
void bind_runs(py::module_& module);
void bind_loaded_run(py::module_& module);

}  // namespace lacuna::python

namespace pybind11::detail {

/// A shape is a tuple of integers.
template <>
struct type_caster<lacuna::Shape> {
  PYBIND11_TYPE_CASTER(lacuna::Shape, const_name("tuple[int, ...]"));
  bool load(handle source, bool) {
    if (!isinstance<sequence>(source) || isinstance<str>(source)) return false;
    value = lacuna::python::to_shape(source);
    return true;
  }
  static handle cast(const lacuna::Shape& shape, return_value_policy, handle) {
    return lacuna::python::to_tuple(shape).release();
  }
};

/// A configuration is made of dicts, lists, numbers, texts and None.
template <>
struct type_caster<lacuna::Config> {
  PYBIND11_TYPE_CASTER(lacuna::Config, const_name("object"));
  bool load(handle source, bool) {
    value = lacuna::python::to_config(source);
    return true;
  }
  static handle cast(const lacuna::Config& config, return_value_policy, handle) {
    return lacuna::python::from_config(config).release();
  }
};

/// A tensor is an array of float32.
template <>
struct type_caster<lacuna::Tensor> {
  PYBIND11_TYPE_CASTER(lacuna::Tensor, const_name("numpy.ndarray"));
  bool load(handle source, bool) {
    if (source.is_none()) return false;
    value = lacuna::python::to_tensor(source);
    return true;
  }
  static handle cast(const lacuna::Tensor& tensor, return_value_policy, handle) {
    if (!tensor.defined()) return none().release();
    return lacuna::python::to_array(tensor).release();
  }
};

/// Labels and ids are an array of integers.
template <>
struct type_caster<lacuna::IndexTensor> {
  PYBIND11_TYPE_CASTER(lacuna::IndexTensor, const_name("numpy.ndarray"));
  bool load(handle source, bool) {
    if (source.is_none()) return false;
    value = lacuna::python::to_index_tensor(source);
    return true;
  }
  static handle cast(const lacuna::IndexTensor& tensor, return_value_policy, handle) {
    if (!tensor.defined()) return none().release();
    return lacuna::python::to_array(tensor).release();
  }
};

/// The state of an algorithm, an optimizer or a model is a dict of arrays, numbers and texts.
template <>
struct type_caster<lacuna::StateDict> {
  PYBIND11_TYPE_CASTER(lacuna::StateDict, const_name("dict"));
  bool load(handle source, bool) {
    if (!isinstance<dict>(source)) return false;
    value = lacuna::python::to_state_dict(reinterpret_borrow<dict>(source));
    return true;
  }
  static handle cast(const lacuna::StateDict& state, return_value_policy, handle) {
    return lacuna::python::to_dict(state).release();
  }
};

}  // namespace pybind11::detail
