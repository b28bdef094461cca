// Python values as configurations, tensors and states, and back.
#include <pybind11/eval.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "binding.hpp"
#include "lacuna/framework/core/foreign_memory.h"
#include "lacuna/framework/io/yaml.h"

namespace lacuna::python {
namespace {

// What is nested deeper holds itself.
constexpr int kDeepest = 100;

Config convert(const py::handle& value, const std::string& path, int depth = 0);

Config convert_map(const py::dict& value, const std::string& path, int depth) {
  Config config = Config::map();
  const std::string where = "configuration" + (path.empty() ? "" : " '" + path + "'");
  for (const auto& [key, item] : value) {
    // Labels are integers in class_names, as YAML has them.
    const bool is_integer = py::isinstance<py::int_>(key) && !py::isinstance<py::bool_>(key);
    if (!is_integer && !py::isinstance<py::str>(key)) {
      throw py::type_error(where + ": the key " + std::string(py::repr(key)) +
                           " is neither text nor an integer");
    }
    const auto name = is_integer ? std::string(py::str(key)) : key.cast<std::string>();
    if (is_integer && value.contains(py::str(key))) {
      throw py::value_error(where + ": the key " + name + " is given twice");
    }
    config.set(name, convert(item, path.empty() ? name : path + "." + name, depth));
  }
  return config;
}

Config convert_integer(const py::handle& value, const std::string& path) {
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0) return number;
  if (overflow > 0) {
    const uint64_t large = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() == nullptr) return large;
    PyErr_Clear();
  }
  throw py::value_error("configuration '" + path + "': an integer must be at least -2^63 and " +
                        "below 2^64, found " + std::string(py::str(value)));
}

Config convert(const py::handle& value, const std::string& path, int depth) {
  if (++depth > kDeepest) throw py::value_error("configuration: nested too deeply, or in itself");
  if (value.is_none()) return {};
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return convert_integer(value, path);
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<py::dict>(value)) {
    return convert_map(py::reinterpret_borrow<py::dict>(value), path, depth);
  }
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    Config config = Config::list();
    size_t index = 0;
    for (const py::handle item : value) {
      config.push_back(convert(item, path + "." + std::to_string(index++), depth));
    }
    return config;
  }
  if (py::hasattr(value, "__fspath__")) return value.attr("__fspath__")().cast<std::string>();
  // NumPy's scalars and arrays become Python's; `item` is theirs and PyTorch's.
  if (py::hasattr(value, "tolist")) return convert(value.attr("tolist")(), path, depth);
  throw py::type_error("configuration '" + path + "': a " +
                       std::string(py::str(py::type::handle_of(value).attr("__name__"))) +
                       " is not allowed; expected None, bool, int, float, str, list or dict");
}

Shape shape_of(const py::array& array) {
  std::vector<int64_t> sizes(array.shape(), array.shape() + array.ndim());
  return Shape(std::span<const int64_t>(sizes));
}

}  // namespace

py::array as_array(const py::handle& value) {
  if (py::isinstance<py::array>(value)) return py::reinterpret_borrow<py::array>(value);
  const py::module_ numpy = py::module_::import("numpy");
  // NumPy has no such type, so PyTorch refuses.
  if (py::hasattr(value, "detach") &&
      py::str(value.attr("dtype")).equal(py::str("torch.bfloat16"))) {
    return numpy.attr("asarray")(value.attr("detach")().attr("float")().attr("cpu")());
  }
  if (py::hasattr(value, "__array__")) return numpy.attr("asarray")(value);
  if (py::hasattr(value, "__dlpack__")) return numpy.attr("from_dlpack")(value);
  return numpy.attr("asarray")(value);
}

std::shared_ptr<const void> keep(py::object object) {
  return {object.release().ptr(), [](const void* held) {
            if (!Py_IsInitialized()) return;  // the process ends
            const py::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held)));
          }};
}

Config to_config(const py::handle& value) { return convert(value, ""); }

py::object from_config(const Config& config) {
  switch (config.kind()) {
    case Config::Kind::Null:
      return py::none();
    case Config::Kind::Scalar: {
      if (config.is_bool()) return py::bool_(config.as<bool>());
      if (!config.is_number()) return py::str(config.text());
      const std::string text = config.text();
      if (text.find_first_not_of("+-0123456789") == std::string::npos) {
        return py::int_(py::str(text));
      }
      return py::float_(config.as<double>());
    }
    case Config::Kind::List: {
      py::list items;
      for (const auto& [key, child] : config.children()) items.append(from_config(child));
      return items;
    }
    case Config::Kind::Map: {
      py::dict entries;
      for (const auto& [key, child] : config.children()) {
        entries[py::str(key)] = from_config(child);
      }
      return entries;
    }
  }
  return py::none();
}

Config read_config(const py::handle& source) {
  if (py::isinstance<py::str>(source)) return load_yaml(source.cast<std::string>());
  if (py::hasattr(source, "__fspath__")) {
    return load_yaml(source.attr("__fspath__")().cast<std::string>());
  }
  return to_config(source);
}

Tensor to_tensor(const py::handle& value) {
  const py::array given = as_array(value);
  const char kind = given.dtype().kind();
  if (std::strchr("fiub", kind) == nullptr) {
    throw py::type_error("expected an array of numbers, found one of " +
                         std::string(py::str(py::handle(given.dtype()))));
  }
  using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
  const Floats array = Floats::ensure(given);
  if (!array)
    throw py::type_error("the array cannot be converted: its element type is not supported");
  const bool is_aligned = reinterpret_cast<uintptr_t>(array.data()) % alignof(float) == 0;
  const Shape shape = shape_of(array);
  const auto count = static_cast<size_t>(array.size());
  if (!is_aligned || count == 0) return Tensor::from(shape, {array.data(), count});
  return tensor_over(shape, const_cast<float*>(array.data()), keep(array));
}

IndexTensor to_index_tensor(const py::handle& value) {
  const py::array given = as_array(value);
  if (std::strchr("iub", given.dtype().kind()) == nullptr && given.size() > 0) {
    throw py::type_error("expected an array of integers, found one of " +
                         std::string(py::str(py::handle(given.dtype()))));
  }
  using Integers = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;
  const Integers array = Integers::ensure(given);
  if (!array)
    throw py::type_error("the array cannot be converted: its element type is not supported");
  return IndexTensor(shape_of(array),
                     std::vector<int64_t>(array.data(), array.data() + array.size()));
}

py::array array_over(const float* data, const Shape& shape, const py::object& owner) {
  const std::vector<py::ssize_t> sizes(shape.sizes().begin(), shape.sizes().end());
  return py::array_t<float>(sizes, data, owner);
}

py::array to_array(const Tensor& tensor) {
  auto held = std::make_unique<Tensor>(tensor.to(Order::RowMajor));
  const float* data = held->data();
  const Shape shape = held->shape();
  const py::capsule owner(held.release(), [](void* p) { delete static_cast<Tensor*>(p); });
  return array_over(data, shape, owner);
}

py::array to_array(const IndexTensor& tensor) {
  const auto sizes = tensor.shape().sizes();
  return py::array_t<int64_t>(std::vector<py::ssize_t>(sizes.begin(), sizes.end()),
                              tensor.values().data());
}

py::tuple to_tuple(const Shape& shape) {
  py::tuple sizes(static_cast<size_t>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) sizes[static_cast<size_t>(i)] = shape[i];
  return sizes;
}

Shape to_shape(const py::handle& sizes) {
  std::vector<int64_t> all;
  for (const py::handle size : sizes) {
    if (!PyIndex_Check(size.ptr())) {
      throw py::type_error("a shape must consist of integers, found " +
                           std::string(py::repr(py::type::handle_of(size))));
    }
    const Py_ssize_t number = PyNumber_AsSsize_t(size.ptr(), PyExc_OverflowError);
    if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    all.push_back(number);
  }
  return Shape(std::span<const int64_t>(all));
}

namespace {

struct ToPython {
  py::object operator()(const Tensor& tensor) const { return to_array(tensor); }
  py::object operator()(const ByteArray& bytes) const {
    const auto sizes = bytes.shape.sizes();
    py::array_t<bool> array(std::vector<py::ssize_t>(sizes.begin(), sizes.end()));
    std::ranges::transform(bytes.values, array.mutable_data(), [](uint8_t b) { return b != 0; });
    return array;
  }
  py::object operator()(const SignedBytes& bytes) const {
    const auto sizes = bytes.shape.sizes();
    return py::array_t<int8_t>(std::vector<py::ssize_t>(sizes.begin(), sizes.end()),
                               bytes.values.data());
  }
  template <class Integer>
  py::object operator()(const std::vector<Integer>& values) const {
    return py::array_t<Integer>(static_cast<py::ssize_t>(values.size()), values.data());
  }
  template <class Number>
  py::object operator()(const Number& value) const {
    return py::cast(value);
  }
};

bool is_plain(const py::handle& value) {
  return py::isinstance<py::str>(value) || py::isinstance<py::bool_>(value) ||
         py::isinstance<py::int_>(value) || py::isinstance<py::float_>(value);
}

template <class Integers>
Integers cast_integers(const std::string& name, const py::handle& value) {
  try {
    return value.cast<Integers>();
  } catch (const py::cast_error&) {
    throw py::value_error("state '" + name + "': an integer must be at least -2^63 and below 2^63");
  }
}

StateDict::Value state_value(const std::string& name, const py::handle& value) {
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<py::bool_>(value)) return int64_t{value.cast<bool>()};
  if (py::isinstance<py::int_>(value)) return cast_integers<int64_t>(name, value);
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  const py::array array = as_array(value);
  const py::dtype type = array.dtype();
  if (type.kind() == 'b') {
    const auto bytes = py::array_t<bool, py::array::c_style | py::array::forcecast>::ensure(array);
    return ByteArray{shape_of(array),
                     std::vector<uint8_t>(bytes.data(), bytes.data() + bytes.size())};
  }
  if (array.ndim() == 0 && type.kind() != 'O') {
    const py::object item = array.attr("item")();
    if (is_plain(item)) return state_value(name, item);  // bytes and others stay arrays of rank 0
  }
  if (array.ndim() > 0 && type.kind() == 'f') return to_tensor(array).clone();
  if (array.ndim() > 0 && type.kind() == 'i' && type.itemsize() == 1) {
    const auto bytes = py::array_t<int8_t, py::array::c_style>::ensure(array);
    return SignedBytes{shape_of(array),
                       std::vector<int8_t>(bytes.data(), bytes.data() + bytes.size())};
  }
  if (array.ndim() == 1 && type.kind() == 'u' && type.itemsize() == 4) {
    return array.cast<std::vector<uint32_t>>();
  }
  if (array.ndim() == 1 && (type.kind() == 'i' || type.kind() == 'u')) {
    return cast_integers<std::vector<int64_t>>(name, array);
  }
  throw py::type_error("state '" + name + "': a state holds numbers, texts, arrays of floats, of " +
                       "masks and of int8, and lists of integers; found an array of " +
                       std::string(py::str(py::handle(type))) + " of rank " +
                       std::to_string(array.ndim()));
}

}  // namespace

py::dict to_dict(const StateDict& state) {
  py::dict entries;
  for (const auto& [name, value] : state.values()) {
    entries[py::str(name)] = std::visit(ToPython(), value);
  }
  return entries;
}

StateDict to_state_dict(const py::dict& state) {
  StateDict converted;
  for (const auto& [name, value] : state) {
    const auto key = name.cast<std::string>();
    converted.set(key, state_value(key, value));
  }
  return converted;
}

}  // namespace lacuna::python
