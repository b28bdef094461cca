// Variables, operations on them, and losses.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/autograd/ops/matmul.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/autograd/ops/softmax.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "numpy_functions.hpp"

namespace lacuna::python {
namespace {

// While it is entered, operations of this thread record nothing.
class NoGradScope {
 public:
  NoGradScope() = default;
  NoGradScope(const NoGradScope&) = delete;
  NoGradScope& operator=(const NoGradScope&) = delete;
  NoGradScope& enter() {
    scopes_.push_back(std::make_unique<NoGrad>());
    return *this;
  }
  void exit(const py::args&) {
    if (scopes_.empty()) throw StateError("no_grad: it has not been entered");
    scopes_.pop_back();
  }

 private:
  std::vector<std::unique_ptr<NoGrad>> scopes_;
};

template <class Operation, class... Values>
auto without_gil(const Operation& operation, const Values&... values) {
  const py::gil_scoped_release released;
  return operation(values...);
}

void bind_unary(py::module_& module, const char* name, Variable (*operation)(const Variable&),
                const char* doc) {
  module.def(
      name, [operation](const py::object& x) { return without_gil(operation, to_variable(x)); },
      py::arg("x"), doc);
}

using Binary = Variable (*)(const Variable&, const Variable&);

// `a operation b`, where b may be an array or a number.
auto binary(Binary operation) {
  return [operation](const Variable& a, const py::object& b) {
    return without_gil(operation, a, to_variable(b));
  };
}
auto reversed(Binary operation) {
  return [operation](const Variable& a, const py::object& b) {
    return without_gil(operation, to_variable(b), a);
  };
}

void run_backward(const Variable& output, const std::optional<Tensor>& gradient) {
  take_over_writes();  // a weight that was written to is an error
  const py::gil_scoped_release released;
  if (gradient) {
    backward(output, gradient->clone());  // gradients are added up in place
  } else {
    backward(output);
  }
}

// By the names of NumPy's functions.
const std::map<std::string, Binary>& operations() {
  static const std::map<std::string, Binary> all = {
      {"add", &add}, {"subtract", &subtract}, {"multiply", &multiply}, {"matmul", &matmul}};
  return all;
}

// What NumPy calls instead of a universal function of its own, also for an operator between an
// array and a Variable: the operators below, and others on arrays, unless a gradient would be lost.
py::object call_of_numpy(const py::object& function, const std::string& method,
                         const py::args& inputs, const py::kwargs& options) {
  const auto name = function.attr("__name__").cast<std::string>();
  if (is_operation(name) && method == "__call__" && options.empty()) {
    return py::cast(operate(name, inputs[0], inputs[1]));
  }
  const auto array_of = [&](const py::handle& value) {
    const auto& variable = value.cast<const Variable&>();
    if (variable.requires_grad() && !gives_truth(name)) {
      throw py::type_error("numpy." + name +
                           " records no gradient: use lacuna's own operations, or take the "
                           "values of the Variable with .numpy()");
    }
    return to_array(variable.value());
  };
  return call_with_arrays<Variable>(function, method, inputs, options, array_of);
}

std::string describe_variable(const Variable& v) {
  std::string text = "Variable(shape=" + v.shape().to_string();
  if (v.requires_grad()) text += ", requires_grad=True";
  return text + ")";
}

void bind_class(py::module_& module) {
  py::class_<Variable>(module, "Variable",
                       "An array in a computation that records the operation that made it. NumPy "
                       "can read it without a copy (`np.asarray(v)`, `v.numpy()`). NumPy's "
                       "universal functions (np.tanh, np.exp, ...) raise TypeError on a Variable "
                       "that requires a gradient; its other functions (np.dot, np.where, ...) take "
                       "the values, and record nothing.")
      .def(
          py::init([](const py::object& value, bool requires_grad) {
            if (requires_grad) {
              const py::array array = py::array::ensure(value);
              if (array && array.dtype().kind() == 'i') {
                throw py::type_error(
                    "integers are ids of tokens and have no gradient; give floats (float32)");
              }
              return Variable::leaf(to_tensor(value));
            }
            return to_variable(value);
          }),
          py::arg("value"), py::arg("requires_grad") = false,
          "Makes a constant or, with requires_grad, a leaf that collects a gradient. Arrays of 32- "
          "or 64-bit integers are ids of tokens. A C-ordered float32 array is shared, not copied: "
          "do not change it before `backward`.")
      .def_property_readonly("shape", [](const Variable& v) { return v.shape(); })
      .def_property_readonly("ndim", [](const Variable& v) { return v.shape().rank(); })
      .def_property_readonly("requires_grad", &Variable::requires_grad)
      .def_property_readonly(
          "grad", [](const Variable& v) { return v.is_leaf() ? v.gradient() : Tensor(); },
          "The gradient that a leaf has collected, or None.")
      .def("zero_grad", &Variable::zero_gradient, "Drops the gradient of a leaf.")
      .def(
          "numpy", [](const Variable& v) { return v.value(); },
          "Returns the value as an array, not a copy.")
      .def(
          "__array__",
          [](const Variable& v, const py::object& dtype) {
            const py::object array = to_array(v.value());
            return dtype.is_none() ? array : array.attr("astype")(dtype);
          },
          py::arg("dtype") = py::none())
      .def(
          "__dlpack__",
          [](const Variable& v, const py::object&) {
            return to_array(v.value()).attr("__dlpack__")();
          },
          py::arg("stream") = py::none())
      .def("__dlpack_device__", [](const Variable&) { return py::make_tuple(1, 0); })
      .def(
          "item", [](const Variable& v) { return v.value().item(); },
          "Returns the value of a variable with one element. Raises ShapeError if it has more.")
      .def("__float__", [](const Variable& v) { return double{v.value().item()}; })
      .def("backward", &run_backward, py::arg("gradient") = py::none(),
           "Computes the gradients of all leaves and parameters that this variable depends on, and "
           "adds them to the collected ones. gradient: the gradient of this variable; required if "
           "it has more than one element. The graph is freed. Raises ShapeError, StateError.")
      .def(
          "detach", [](const Variable& v) { return Variable(v.value()); },
          "Returns the value as a constant.")
      .def(
          "reshape",
          [](const Variable& v, const py::args& sizes) {
            const bool is_one = sizes.size() == 1 && py::isinstance<py::sequence>(sizes[0]);
            return reshape(v, to_shape(is_one ? py::object(sizes[0]) : py::object(sizes)));
          },
          "Returns the same elements in another shape.")
      .def("flatten", &flatten, ReleaseGil(), "Reshapes [batch, ...] to [batch, features].")
      .def("transpose", &transpose, ReleaseGil(), "Exchanges the last two dimensions.")
      .def("sum", &sum, ReleaseGil(), "Returns the sum of all elements.")
      .def("mean", &mean, ReleaseGil(), "Returns the mean of all elements.")
      .def("__add__", binary(&add))
      .def("__radd__", binary(&add))
      .def("__sub__", binary(&subtract))
      .def("__rsub__", reversed(&subtract))
      .def("__mul__", binary(&multiply))
      .def("__rmul__", binary(&multiply))
      .def("__matmul__", binary(&matmul))
      .def("__rmatmul__", reversed(&matmul))
      .def(
          "__neg__", [](const Variable& v) { return scale(v, -1.0f); }, ReleaseGil())
      .def(
          "__truediv__", [](const Variable& v, float divisor) { return scale(v, 1 / divisor); },
          ReleaseGil())
      .def("__len__",
           [](const Variable& v) {
             if (v.shape().rank() == 0) throw py::type_error("a scalar has no length");
             return v.shape()[0];
           })
      .def("__bool__",
           [](const Variable& v) {
             if (v.shape().numel() == 1) return v.value().to_vector().front() != 0.0f;
             throw py::value_error("only a Variable of one value is true or false");
           })
      .def("__repr__", &describe_variable)
      .def("__reduce__",
           [](const Variable&) -> py::object {
             throw py::type_error("a Variable cannot be pickled; pickle v.numpy()");
           })
      .def("__array_ufunc__",
           [](const Variable&, const py::object& function, const std::string& method,
              const py::args& inputs, const py::kwargs& options) {
             return call_of_numpy(function, method, inputs, options);
           });
}

void bind_operations(py::module_& module) {
  bind_unary(module, "relu", &relu, "max(x, 0).");
  bind_unary(module, "squared_relu", &squared_relu, "max(x, 0) squared.");
  bind_unary(module, "gelu", &gelu,
             "x times the cumulative distribution function of the normal distribution.");
  bind_unary(module, "gelu_tanh", &gelu_tanh, "The approximation of GELU with tanh.");
  bind_unary(module, "silu", &silu, "x times sigmoid(x).");
  bind_unary(module, "sigmoid", &sigmoid, "1 / (1 + exp(-x)).");
  bind_unary(module, "tanh", &tanh, "tanh(x).");
  bind_unary(module, "softmax", &softmax, "Computed over the last dimension.");
  bind_unary(module, "log_softmax", &log_softmax, "Computed over the last dimension.");
  module.def(
      "leaky_relu",
      [](const py::object& x, float negative_slope) {
        const Variable v = to_variable(x);
        const py::gil_scoped_release released;
        return leaky_relu(v, negative_slope);
      },
      py::arg("x"), py::arg_v("negative_slope", 0.01f, "0.01"),
      "x for x >= 0, otherwise negative_slope * x.");
  module.def(
      "cat",
      [](const py::sequence& tensors, int dim) {
        std::vector<Variable> inputs;
        for (size_t i = 0; i < tensors.size(); ++i) {
          inputs.push_back(to_variable(py::object(tensors[i])));
        }
        const py::gil_scoped_release released;
        return concatenate(inputs, dim);
      },
      py::arg("tensors"), py::arg("dim") = 0,
      "Concatenates arrays along a dimension. Raises ShapeError.");
  module.def(
      "bmm",
      [](const py::object& a, const py::object& b) {
        return without_gil(&bmm, to_variable(a), to_variable(b));
      },
      py::arg("a"), py::arg("b"), "One matrix product per example: [batch, m, k] @ [batch, k, n].");
  module.def(
      "linear",
      [](const py::object& x, const ParameterPtr& weight, const py::object& bias) {
        if (weight == nullptr) throw py::type_error("linear: the weight must be a Parameter");
        const Variable input = to_variable(x);
        const Variable offset = bias.is_none() ? Variable() : to_variable(bias);
        const py::gil_scoped_release released;
        return linear(input, weight, offset);
      },
      py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(),
      "x weight^T + bias, computed in the weight's layout. x: [..., in]; weight: a Parameter [out, "
      "in]; bias: [out], or None. Raises ShapeError.");
  py::class_<NoGradScope>(module, "no_grad",
                          "Within `with lacuna.no_grad():`, operations of this thread record "
                          "nothing for a backward pass.")
      .def(py::init<>())
      .def("__enter__", &NoGradScope::enter, py::return_value_policy::reference_internal)
      .def("__exit__", &NoGradScope::exit);
}

void bind_losses(py::module_& module) {
  module.def(
      "cross_entropy",
      [](const py::object& logits, const IndexTensor& labels,
         const std::optional<std::vector<float>>& weight, double label_smoothing) {
        const Variable x = to_variable(logits);
        const py::gil_scoped_release released;
        return cross_entropy(x, labels,
                             {.label_smoothing = label_smoothing,
                              .class_weights = weight.value_or(std::vector<float>())});
      },
      py::arg("input"), py::arg("target"), py::arg("weight") = py::none(),
      py::arg("label_smoothing") = 0.0,
      "The mean over the labels of -log softmax(input)[label], as in PyTorch. input: logits "
      "[examples, ..., classes]. target: integers [examples, ...]; a label of -100 is ignored. "
      "If all are, or all have weight 0, the result is 0 without a gradient, where PyTorch gives "
      "NaN. weight: one factor per class. Raises ShapeError, DataError, ConfigError.");
  module.def(
      "mse_loss",
      [](const py::object& prediction, const py::object& target) {
        return without_gil(&mse_loss, to_variable(prediction), to_variable(target));
      },
      py::arg("input"), py::arg("target"),
      "The mean over all elements of (input - target) squared. Both arrays have the same shape.");
  module.def(
      "binary_cross_entropy_with_logits",
      [](const py::object& logits, const Tensor& target,
         const std::optional<std::vector<float>>& pos_weight) {
        const Variable x = to_variable(logits);
        const std::vector<float> weights = pos_weight.value_or(std::vector<float>());
        const py::gil_scoped_release released;
        return binary_cross_entropy(x, target, weights);
      },
      py::arg("input"), py::arg("target"), py::arg("pos_weight") = py::none(),
      "The mean over all elements of the binary cross entropy of logits and targets. Targets are "
      "in [0, 1], in the shape of the logits.");
  module.def(
      "distillation_loss",
      [](const py::object& logits, const Tensor& teacher, double temperature) {
        const Variable x = to_variable(logits);
        const py::gil_scoped_release released;
        return distillation_loss(x, teacher, temperature);
      },
      py::arg("input"), py::arg("teacher"), py::arg("temperature") = 1.0,
      "The divergence of logits from those of a teacher: the squared temperature times the mean "
      "over the rows of the Kullback-Leibler divergence of the two softmaxes at that temperature.");
}

}  // namespace

Variable to_variable(const py::handle& value) {
  if (py::isinstance<Variable>(value)) return value.cast<Variable>();
  if (py::isinstance<Parameter>(value)) return Variable::of(value.cast<ParameterPtr>());
  const py::array array = as_array(value);
  const py::dtype type = array.dtype();
  if (type.kind() == 'i' && type.itemsize() >= 4) return token_ids(to_index_tensor(array));
  return Variable(to_tensor(array));
}

bool is_operation(const std::string& name) { return operations().contains(name); }

Variable operate(const std::string& name, const py::handle& a, const py::handle& b) {
  return without_gil(operations().at(name), to_variable(a), to_variable(b));
}

void bind_variables(py::module_& module) {
  bind_class(module);
  bind_operations(module);
  bind_losses(module);
}

}  // namespace lacuna::python
