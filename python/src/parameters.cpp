// Parameters: their values, masks and gradients as NumPy arrays.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/weights/mask_installer.h"
#include "lacuna/sparsity/weights/master_weight.h"
#include "parameter_arrays.hpp"
#include "values_view.hpp"

namespace lacuna::python {
namespace {

// The views that there may be, of all parameters. The GIL guards it.
std::vector<std::weak_ptr<ValuesView>>& views() {
  static auto* all = new std::vector<std::weak_ptr<ValuesView>>;
  return *all;
}

// Patterns of a parameter that Python has seen.
struct SeenPattern {
  std::weak_ptr<Parameter> parameter;
  std::weak_ptr<const Pattern> pattern;
  int64_t version = 0;
};

std::unordered_map<const Parameter*, SeenPattern>& seen_patterns() {
  static auto* seen = new std::unordered_map<const Parameter*, SeenPattern>;
  return *seen;
}

int64_t version_of(const ParameterPtr& parameter) {
  auto& seen = seen_patterns();
  std::erase_if(seen, [](const auto& entry) { return entry.second.parameter.expired(); });
  SeenPattern& last = seen[parameter.get()];
  if (last.pattern.lock() != parameter->pattern()) {
    last = {parameter, parameter->pattern(), last.version + 1};
  }
  return last.version;
}

py::array values_of(const ParameterPtr& parameter) {
  version_of(parameter);
  auto view = std::make_shared<ValuesView>(parameter);
  views().push_back(view);
  const Tensor& values = view->values;
  return array_over(values.data(), values.shape(), py::cast(view));
}

// The view that an array is, or is a part of; null where it is none.
std::shared_ptr<ValuesView> view_of(py::handle array) {
  while (py::isinstance<py::array>(array)) array = array.attr("base");
  return py::isinstance<ValuesView>(array) ? array.cast<std::shared_ptr<ValuesView>>() : nullptr;
}

void set_values(const ParameterPtr& parameter, const py::object& given) {
  const auto view = view_of(given);
  if (view != nullptr && view->parameter.lock() == parameter && !view->is_current(*parameter)) {
    throw StateError(
        fmt::format("the array belongs to an earlier pattern of parameter '{}', which is at "
                    "version {} now: take `values` again",
                    parameter->name(), version_of(parameter)));
  }
  const Tensor values = to_tensor(given);
  const Tensor& mine = parameter->values();
  if (values.shape() != mine.shape()) {
    throw ShapeError(fmt::format(
        "the values of parameter '{}' have shape {} in layout '{}', found {}; `assign` takes an "
        "array of its own shape, {}",
        parameter->name(), mine.shape().to_string(), parameter->pattern()->layout().name(),
        values.shape().to_string(), parameter->shape().to_string()));
  }
  Tensor& target = parameter->mutable_values();
  if (target.data() != values.data()) std::ranges::copy(values.storage(), target.mutable_data());
  if (!parameter->pattern()->is_dense()) parameter->prune();
}

py::object gradient_of(const ParameterPtr& parameter) {
  if (!parameter->has_gradient()) return py::none();
  if (parameter->row_gradient() != nullptr) return to_array(parameter->gradient().clone());
  return to_array(parameter->mutable_gradient());
}

void set_gradient(Parameter& parameter, const py::object& given) {
  if (given.is_none()) return parameter.zero_gradient();
  const Tensor gradient = to_tensor(given).clone();
  const Shape stored = parameter.pattern()->stored_shape();
  if (gradient.shape() != stored) {
    throw ShapeError(fmt::format("the gradient of parameter '{}' has shape {}, found {}",
                                 parameter.name(), stored.to_string(),
                                 gradient.shape().to_string()));
  }
  parameter.zero_gradient();
  parameter.add_gradient(gradient);
}

// The layout that there is, or, of a dense parameter, the one that suits the mask by numbers that
// are the same on every machine.
LayoutPolicy policy_for(const Parameter& parameter) {
  const Pattern& pattern = *parameter.pattern();
  const std::string_view name = pattern.layout().name();
  const bool stays = !pattern.is_dense() && (name == "masked" || name == "csr");
  LayoutPolicy policy(stays ? LayoutOption(pattern.layout()) : LayoutOption());
  policy.limits().are_measured = false;
  return policy;
}

void set_mask_of_parameter(Parameter& parameter, const py::object& given) {
  const MaskSet mask = to_mask(given, parameter.shape(), "the mask of '" + parameter.name() + "'");
  if (set_mask_by_own(parameter, mask)) return;
  const py::gil_scoped_release released;
  install_mask(parameter, mask, policy_for(parameter), {.master = master_of(parameter)});
}

py::object to_scipy(const Parameter& parameter) {
  const Positions positions = parameter.pattern()->positions();
  const auto columns = positions.column();
  const auto rows = positions.row_begin();
  py::array_t<int64_t> indices(static_cast<py::ssize_t>(columns.size()));
  std::ranges::copy(columns, indices.mutable_data());
  const py::array_t<int64_t> begins(static_cast<py::ssize_t>(rows.size()), rows.data());
  const py::object values = to_array(parameter.compacted(parameter.values()));
  const auto make = py::module_::import("scipy.sparse").attr("csr_matrix");
  return make(py::make_tuple(values, indices, begins),
              py::arg("shape") = py::make_tuple(positions.rows(), positions.columns()));
}

py::array_t<int64_t> positions_of(const Parameter& parameter) {
  py::array_t<int64_t> flat(parameter.pattern()->nnz());
  int64_t* to = flat.mutable_data();
  parameter.pattern()->positions().for_each([&](int64_t position) { *to++ = position; });
  return flat;
}

// The positions of stored values: their numbers, as bits, go the way that values go.
py::array_t<int64_t> stored_positions_of(const Parameter& parameter) {
  const py::array_t<int64_t> positions = positions_of(parameter);
  Tensor numbers = Tensor::empty(Shape{parameter.pattern()->nnz()});
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    numbers.mutable_data()[i] = std::bit_cast<float>(static_cast<uint32_t>(i + 1));
  }
  const Tensor stored = parameter.expanded(numbers);
  const auto sizes = stored.shape().sizes();
  py::array_t<int64_t> flat(std::vector<py::ssize_t>(sizes.begin(), sizes.end()));
  std::ranges::transform(stored.storage(), flat.mutable_data(), [&](float bits) {
    const auto number = std::bit_cast<uint32_t>(bits);
    return number == 0 ? int64_t{-1} : positions.data()[number - 1];
  });
  return flat;
}

ParameterPtr make_parameter(const py::object& given, const py::object& use) {
  const Tensor values = to_tensor(given).clone();
  if (values.numel() == 0) throw ShapeError("a parameter needs at least one element");
  auto parameter = std::make_shared<Parameter>(values.shape(), Initializer::constant(0.0));
  if (!use.is_none()) {
    if (!py::isinstance<py::str>(use) || use.cast<std::string>() != "linear") {
      throw py::value_error("Parameter: use is None or 'linear'");
    }
    if (values.shape().rank() != 2) {
      throw ShapeError("a parameter for linear() has shape [out, in], found " +
                       values.shape().to_string());
    }
    parameter->use = WeightUse::Linear;
  }
  parameter->assign(values);
  return parameter;
}

py::object size_of(const Parameter& parameter) {
  const auto make = py::module_::import("lacuna.names").attr("CallableInt");
  const int64_t numel = parameter.numel();
  return make(numel, py::cpp_function([numel] { return numel; }));
}

py::object abs(const py::object& parameter) {
  return py::module_::import("numpy").attr("abs")(parameter);
}

std::string describe_parameter(const Parameter& p) {
  return fmt::format("Parameter('{}', shape={}, nnz={}, layout='{}')", p.name(),
                     p.shape().to_string(), p.pattern()->nnz(), p.pattern()->layout().name());
}

}  // namespace

MaskSet to_mask(const py::handle& given, const Shape& shape, const std::string& what) {
  const py::array array = as_array(given);
  const bool is_integer = array.dtype().kind() == 'i' || array.dtype().kind() == 'u';
  if (array.dtype().kind() != 'b' && !is_integer) {
    throw py::type_error(what + ": expected an array of bool, found one of " +
                         std::string(py::str(py::handle(array.dtype()))));
  }
  const Shape found = to_shape(py::tuple(array.attr("shape")));
  if (found != shape) {
    throw ShapeError(
        fmt::format("{}: expected shape {}, found {}", what, shape.to_string(), found.to_string()));
  }
  const auto bits = py::array_t<bool, py::array::c_style | py::array::forcecast>::ensure(array);
  const auto* bytes = reinterpret_cast<const uint8_t*>(bits.data());
  return MaskSet(shape, BitMask::from_bytes({bytes, static_cast<size_t>(bits.size())}));
}

py::array to_array(const MaskSet& mask) {
  const auto sizes = mask.shape().sizes();
  py::array_t<bool> array(std::vector<py::ssize_t>(sizes.begin(), sizes.end()));
  bool* to = array.mutable_data();
  std::fill_n(to, array.size(), false);
  mask.positions().for_each([&](int64_t position) { to[position] = true; });
  return array;
}

void note_parameters(const std::vector<ParameterPtr>& parameters) {
  for (const ParameterPtr& parameter : parameters) version_of(parameter);
}

py::object known_parameter(const Parameter& parameter) {
  const auto found = seen_patterns().find(&parameter);
  const ParameterPtr known =
      found == seen_patterns().end() ? nullptr : found->second.parameter.lock();
  return known == nullptr ? py::object(py::str(parameter.name())) : py::cast(known);
}

void take_over_writes() {
  if (views().empty()) return;
  std::erase_if(views(), [](const auto& view) { return view.expired(); });
  for (const auto& weak : views()) {
    if (const auto view = weak.lock()) view->take_over_writes();
  }
}

void bind_parameters(py::module_& module) {
  py::class_<ValuesView, std::shared_ptr<ValuesView>>(module, "_ValuesView");
  py::class_<Parameter, ParameterPtr>(
      module, "Parameter",
      "A trained array of a model. A compressed layout stores only its nonzeros.")
      .def(py::init(&make_parameter), py::arg("values"), py::arg("use") = py::none(),
           "A parameter for a lacuna.nn.Module. Its initial values are a copy of `values`. use: "
           "'linear' for a weight [out, in] that only lacuna.linear multiplies by. Such a weight "
           "can have any layout, and algorithms treat it like the weight of a layer. Other "
           "parameters become sparse only if a filter names them, in a layout that stores every "
           "position. Raises ShapeError.")
      .def_property_readonly("name", &Parameter::name, "Full name, such as 'encoder.fc1.weight'.")
      .def_property_readonly(
          "shape", [](const Parameter& p) { return p.shape(); }, "The shape, a tuple.")
      .def_property_readonly(
          "ndim", [](const Parameter& p) { return p.shape().rank(); }, "Number of dimensions.")
      .def_property_readonly("numel", &size_of, "Number of elements. numel() returns it too.")
      .def(
          "dim", [](const Parameter& p) { return p.shape().rank(); }, "Returns ndim.")
      .def(
          "size",
          [](const Parameter& p, const py::object& dim) -> py::object {
            const py::tuple sizes = to_tuple(p.shape());
            return dim.is_none() ? py::object(sizes) : sizes.attr("__getitem__")(dim);
          },
          py::arg("dim") = py::none(), "Returns shape, or shape[dim].")
      .def_property_readonly(
          "param", [](const ParameterPtr& p) { return p; },
          "The parameter itself. SparseWeight has the same attribute, so code can handle both "
          "alike.")
      .def(
          "abs", [](const py::object& p) { return abs(p); }, "Returns np.abs(p), a dense copy.")
      .def_property_readonly(
          "nnz", [](const Parameter& p) { return p.pattern()->nnz(); },
          "Number of positions that exist.")
      .def_property_readonly(
          "density", [](const Parameter& p) { return p.pattern()->density(); },
          "Fraction of the positions that exist.")
      .def_property_readonly(
          "layout", [](const Parameter& p) { return std::string(p.pattern()->layout().name()); },
          "How the parameter is stored: 'dense', 'masked', 'csr', 'nm 2:4', ...")
      .def_property_readonly("bytes", &Parameter::bytes,
                             "Memory of values, gradient, states and index, in bytes.")
      .def_property_readonly("version", &version_of,
                             "A number that differs after each change of the pattern. Changes are "
                             "noticed when `values` or `version` is read.")
      .def_readonly("sparsified_by", &Parameter::sparsified_by,
                    "Name of the algorithm that manages the parameter; empty if there is none.")
      .def_readwrite("requires_dense", &Parameter::requires_dense,
                     "If true, algorithms that are applied later leave the parameter dense.")
      .def_readwrite("trainable", &Parameter::trainable,
                     "Whether the parameter is trained. Set it before an algorithm is applied.")
      .def_property(
          "values", &values_of, &set_values,
          "The stored values, not a copy; the array can be read and written. In the layouts "
          "'dense' and 'masked' it has the parameter's shape. In other layouts it holds the "
          "nonzeros in the layout's order. After a change of the pattern, `values` is another "
          "array, and writing into the old one has no effect. While such an array exists, each "
          "call of a model reads all values once to notice what was written. They are also read "
          "once when the array is deleted. `to_numpy` avoids this. "
          "Assigning raises ShapeError, and StateError for an array of an earlier pattern.")
      .def_property(
          "grad", &gradient_of, &set_gradient,
          "The gradient, not a copy, stored like `values`; None if there is none, and for a "
          "weight with a dense master (STE, SemiSparse), whose gradient the algorithm "
          "collects. For an embedding with sparse=True, it is a copy of all rows.")
      .def_property(
          "mask", [](const Parameter& p) { return to_array(MaskSet(p.pattern())); },
          &set_mask_of_parameter,
          "The positions that exist: a copy, bool in the parameter's shape. Assigning installs "
          "another mask: positions in both masks keep value, gradient and optimizer states, new "
          "ones start at zero. If an algorithm that is a Python class manages the parameter, this "
          "counts as one of its updates: hooks are called, and the update is recorded. Raises "
          "ShapeError.")
      .def_property_readonly("positions", &positions_of,
                             "Flat indices of the positions that exist, in ascending order: int64.")
      .def_property_readonly("stored_positions", &stored_positions_of,
                             "For each element of `values`, the flat index of its position; -1 for "
                             "unused elements. Has the shape of `values`.")
      .def(
          "to_numpy",
          [](const Parameter& p) {
            take_over_writes();
            return p.to_dense();
          },
          "Returns a dense copy in the parameter's shape.")
      .def(
          "__array__",
          [](const Parameter& p, const py::object& dtype) {
            take_over_writes();
            const py::object array = to_array(p.to_dense());
            return dtype.is_none() ? array : array.attr("astype")(dtype);
          },
          py::arg("dtype") = py::none())
      .def("to_scipy", &to_scipy,
           "Returns a copy as scipy.sparse.csr_matrix. Dimension 0 is the rows, all others "
           "together the columns.")
      .def(
          "assign", [](Parameter& p, const Tensor& values) { p.assign(values); }, py::arg("values"),
          "Copies the values at the mask's positions from an array of the parameter's shape. "
          "Raises ShapeError.")
      .def("zero_grad", &Parameter::zero_gradient, "Drops the gradient.")
      .def(
          "__dlpack__",
          [](const ParameterPtr& p, const py::object&) {
            const bool is_whole = p->pattern()->stores_every_position();
            const py::object array =
                is_whole ? py::object(values_of(p)) : py::object(to_array(p->to_dense()));
            return array.attr("__dlpack__")();
          },
          py::arg("stream") = py::none(),
          "For torch.from_dlpack(p): not a copy if the layout stores every position, otherwise a "
          "dense copy.")
      .def("__dlpack_device__", [](const Parameter&) { return py::make_tuple(1, 0); })
      .def("__repr__", &describe_parameter)
      .def("__reduce__", [](const Parameter&) -> py::object {
        throw py::type_error("a Parameter cannot be pickled; pickle the model's state_dict()");
      });
}

}  // namespace lacuna::python
