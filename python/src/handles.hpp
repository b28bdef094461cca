// How objects of the library are held by Python, and lived with: what several sources of the module
// need in addition to binding.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "binding.hpp"
#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {
class Module;
class SparsityAlgorithm;
}  // namespace lacuna

namespace lacuna::python {

/// A Variable, a Parameter (its value, where every position is stored), or an array as a constant;
/// arrays of 32- or 64-bit integers are ids of tokens.
Variable to_variable(const py::handle& value);

/// Whose code of Python runs. Operators of Parameters give Variables in a module's forward pass,
/// where functions of NumPy that would lose a gradient are refused, too; arrays within an
/// algorithm's functions and hooks; in a script Variables, but with a NumPy array arrays.
enum class CodeOf { Script, Module, Algorithm };
class CodeScope {
 public:
  explicit CodeScope(CodeOf code);
  ~CodeScope();
  CodeScope(const CodeScope&) = delete;
  CodeScope& operator=(const CodeScope&) = delete;

 private:
  CodeOf before_;
};
/// To be held while functions of algorithms, and hooks, are called.
class AlgorithmCode {
  py::gil_scoped_acquire gil_;
  CodeScope scope_{CodeOf::Algorithm};
};

/// To be called before values are used: what NumPy arrays that are views of parameters' values have
/// written into them counts as changed, and nothing that was written outside of a mask stays.
/// *Cost:* none while Python holds no such view.
void take_over_writes();

/// Makes parameters known to `known_parameter`.
void note_parameters(const std::vector<ParameterPtr>& parameters);
/// The Python object of a parameter that Python has seen before; its name of another one.
py::object known_parameter(const Parameter& parameter);

/// A Python object's algorithm for C++ to keep: the object lives as long. *Errors:* TypeError.
std::shared_ptr<SparsityAlgorithm> owned_algorithm(const py::object& object);
/// The Python object of an algorithm: the one that there is, or a new one that shares it with the
/// group that it is a part of.
py::object python_object(SparsityAlgorithm& algorithm);

/// Computes a module's output. *Errors:* TypeError for a keyword that no layer reads.
Variable call_module(Module& module, const py::object& input, const py::kwargs& named);
/// The output in evaluation mode, `batch_size` examples at a time; of all at once if a keyword's
/// array does not have their number in dimension 0. *Errors:* as call_module; ShapeError if batches
/// give no rows of one output.
Tensor predict_by_module(Module& module, const py::object& input, int64_t batch_size,
                         const py::kwargs& named);

/// A module's child, or a parameter of its own. *Errors:* AttributeError.
py::object part_of(const py::object& module, const std::string& name);
/// Calls a function for all modules below and for this one, which it returns. *Errors:* TypeError.
py::object apply_function(const py::object& module, const py::object& function);

/// Dense copies of parameters and buffers by name, with NAME_mask of sparse parameters if `masks`.
py::dict state_dict(Module& module, bool masks);
/// Takes arrays by the names of parameters, masks and buffers, all or none of them. *Errors:*
/// CheckpointError, which lists all differences; `strict`: missing and unknown names are some.
void load_state_dict(Module& module, const py::dict& state, bool strict);

void bind_variables(py::module_& module);
void bind_parameters(py::module_& module);
void bind_parameter_operators(py::module_& module);
void bind_modules(py::module_& module);
void bind_optimizers(py::module_& module);
void bind_data(py::module_& module);
void bind_own_data(py::module_& module);
void bind_own_modules(py::module_& module);
void bind_sparsity(py::module_& module);
void bind_own_algorithms(py::module_& module);
void bind_mask_functions(py::module_& module);

}  // namespace lacuna::python
