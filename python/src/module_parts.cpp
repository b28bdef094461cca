// Parts of modules by their names, and functions that are called for all of them.
#include <memory>
#include <string>

#include "handles.hpp"
#include "lacuna/framework/nn/module.h"

namespace lacuna::python {

py::object part_of(const py::object& self, const std::string& name) {
  const auto module = self.cast<std::shared_ptr<Module>>();
  for (const auto& [known, child] : module->children()) {
    if (known == name) return py::cast(std::shared_ptr<Module>(module, child));
  }
  const std::string path = module->path().empty() ? name : module->path() + "." + name;
  for (const ParameterPtr& parameter : module->parameters()) {
    if (parameter->name() == path) return py::cast(parameter);
  }
  throw py::attribute_error("'" + py::type::of(self).attr("__name__").cast<std::string>() +
                            "' object has no attribute '" + name + "'");
}

py::object apply_function(const py::object& self, const py::object& function) {
  if (!PyCallable_Check(function.ptr())) {
    throw py::type_error("apply: expected a sparsity algorithm, or a function f(module), found " +
                         std::string(py::repr(function)));
  }
  for (const py::handle child : self.attr("children")()) {
    apply_function(py::reinterpret_borrow<py::object>(child), function);
  }
  function(self);
  return self;
}

}  // namespace lacuna::python
