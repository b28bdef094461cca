// lacuna's exceptions as Python classes.
#include <filesystem>
#include <string_view>

#include "binding.hpp"
#include "lacuna/framework/config/error_place.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::python {
namespace {

// The classes, which live as long as the interpreter.
struct ErrorClasses {
  PyObject *error, *shape, *config, *checkpoint, *data, *memory, *state;
};
ErrorClasses classes;

PyObject* add_class(py::module_& module, const char* name, const char* doc, PyObject* base,
                    PyObject* kind = nullptr) {
  const std::string full = std::string("lacuna.") + name;
  const py::object bases = kind == nullptr
                               ? py::reinterpret_borrow<py::object>(base)
                               : py::object(py::make_tuple(py::handle(base), py::handle(kind)));
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  module.attr(name) = py::reinterpret_borrow<py::object>(made);
  return made;
}

void raise(PyObject* type, const std::exception& error) {
  const py::object text = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
      error.what(), static_cast<Py_ssize_t>(std::char_traits<char>::length(error.what())),
      "replace"));
  PyErr_SetObject(type, text.ptr());
}

// With the place of the mistake, as far as the message names it.
void raise_config(const std::exception& error) {
  const ErrorPlace place = ErrorPlace::of(error.what());
  const py::object made = py::reinterpret_borrow<py::object>(classes.config)(py::str(error.what()));
  const auto text = [](const std::string& known) {
    return known.empty() ? py::object(py::none()) : py::object(py::str(known));
  };
  const auto number = [](int known) {
    return known == 0 ? py::object(py::none()) : py::object(py::int_(known));
  };
  made.attr("file") = text(place.file);
  made.attr("line") = number(place.line);
  made.attr("column") = number(place.column);
  made.attr("key") = text(place.key);
  PyErr_SetObject(classes.config, made.ptr());
}

void translate(std::exception_ptr problem) {
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (const ShapeError& error) {
    raise(classes.shape, error);
  } catch (const ConfigError& error) {
    raise_config(error);
  } catch (const CheckpointError& error) {
    raise(classes.checkpoint, error);
  } catch (const DataError& error) {
    raise(classes.data, error);
  } catch (const MemoryError& error) {
    raise(classes.memory, error);
  } catch (const StateError& error) {
    raise(classes.state, error);
  } catch (const Error& error) {
    raise(classes.error, error);
  }
}

// What is used of an object whose class in Python has not called the __init__ of its base.
constexpr const char* kNoInit =
    "the object is not made yet: call super().__init__() before anything else of it is used";

void translate_cast(std::exception_ptr problem) {
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (const std::filesystem::filesystem_error& error) {
    PyErr_SetString(PyExc_OSError, error.code().message().c_str());
  } catch (const py::cast_error& error) {  // pybind11 would make it a RuntimeError
    const bool is_unmade =
        std::string_view(error.what()).find("non-held") != std::string_view::npos;
    PyErr_SetString(
        PyExc_TypeError,
        is_unmade ? kNoInit
                  : "an argument, or what a function returned, is of another type than expected");
  }
}

}  // namespace

void refuse_unmade_objects(const py::module_& module) {
  for (const auto& [name, thing] : py::reinterpret_borrow<py::dict>(module.attr("__dict__"))) {
    if (!PyType_Check(thing.ptr())) continue;
    py::detail::type_info* type =
        py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(thing.ptr()));
    // pybind11 would hand out memory in which nothing has been constructed.
    if (type != nullptr)
      type->operator_new = [](size_t) -> void* { throw py::type_error(kNoInit); };
  }
  py::register_exception_translator(translate_cast);
}

void bind_errors(py::module_& module) {
  classes.error =
      add_class(module, "Error", "Base of every exception that lacuna raises.", PyExc_Exception);
  PyObject* const base = classes.error;
  classes.shape =
      add_class(module, "ShapeError", "Shapes that do not fit each other.", base, PyExc_ValueError);
  classes.config = add_class(module, "ConfigError",
                             "A wrong configuration or option. `file`, `line`, `column` and `key` "
                             "give the place of the mistake; each is None if it is not known.",
                             base, PyExc_ValueError);
  const py::object config = py::reinterpret_borrow<py::object>(classes.config);
  for (const char* name : {"file", "line", "column", "key"}) config.attr(name) = py::none();
  classes.checkpoint =
      add_class(module, "CheckpointError",
                "A checkpoint that is damaged, of a newer format, or of another model.", base);
  classes.data =
      add_class(module, "DataError", "Data that is missing, malformed or inconsistent.", base);
  classes.memory =
      add_class(module, "MemoryError", "The system did not provide the requested memory.", base,
                PyExc_MemoryError);
  classes.state =
      add_class(module, "StateError", "A call that is not allowed in the present state.", base);
  py::register_exception_translator(translate);
}

}  // namespace lacuna::python
