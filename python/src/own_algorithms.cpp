// Classes that algorithms in Python are derived from, the weights that they work on, and how a
// configuration names them.
#include "own_algorithms.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/masks/scores.h"
#include "lacuna/sparsity/set.h"

namespace lacuna::python {
namespace {

using AlgorithmPtr = std::shared_ptr<SparsityAlgorithm>;

// Those that there are. The GIL guards it.
std::vector<OwnBase*>& own_algorithms() {
  static auto* all = new std::vector<OwnBase*>;
  return *all;
}

// The options of an algorithm whose masks change, from keywords.
DynamicOptions options_of(const AlgorithmKeys& keys, bool drops) {
  const bool has_fraction = drops || keys.entry.has("drop_fraction");
  DynamicOptions options = has_fraction ? drop_grow_options(keys.entry, keys.seed)
                                        : dynamic_options(keys.entry, keys.seed);
  keys.put_functions_into(options);
  keys.entry.require_all_read();
  return options;
}

DynamicSparsityAlgorithm& dynamic_owner(const AlgorithmPtr& owner) {
  auto* dynamic = dynamic_cast<DynamicSparsityAlgorithm*>(owner.get());
  if (dynamic == nullptr) {
    throw StateError("'" + std::string(owner->type()) + "' collects no dense gradients");
  }
  return *dynamic;
}

Tensor dense_gradient(DynamicSparsityAlgorithm& algorithm, const SparseWeight& weight) {
  return (algorithm.*&DynamicAccess::dense_gradient)(weight);
}

MaskSet keep_largest(const WeightHandle& handle, const py::object& mask, const Tensor& scores,
                     int64_t count) {
  const SparseWeight& weight = handle.weight();
  const MaskSet present = to_mask(mask, weight.shape(), "keep: the mask");
  Tensor of_present = scores;
  if (scores.shape() == weight.shape() && scores.numel() != present.count()) {
    of_present = Tensor::empty(Shape{present.count()});
    float* to = of_present.mutable_data();
    present.positions().for_each([&](int64_t position) { *to++ = scores.data()[position]; });
  }
  const py::gil_scoped_release released;
  return weight.selector().keep(present, of_present.storage(), count);
}

MaskSet grow_largest(const WeightHandle& handle, const py::object& mask, const Tensor& scores,
                     int64_t count) {
  const SparseWeight& weight = handle.weight();
  const MaskSet present = to_mask(mask, weight.shape(), "grow_maximum: the mask");
  if (scores.shape() != weight.shape()) {
    throw ShapeError(fmt::format("grow_maximum: the scores of '{}' need shape {}, found {}",
                                 weight.name(), weight.shape().to_string(),
                                 scores.shape().to_string()));
  }
  const py::gil_scoped_release released;
  return weight.selector().grow_maximum(rows_of(scores), count, present);
}

MaskSet grow_random(const WeightHandle& handle, const py::object& mask, const CounterRng& rng,
                    int64_t count) {
  const SparseWeight& weight = handle.weight();
  const MaskSet present = to_mask(mask, weight.shape(), "grow_random: the mask");
  const py::gil_scoped_release released;
  return weight.selector().grow_random(rng, count, present);
}

void set_mask_of_handle(const WeightHandle& handle, const py::object& given) {
  const AlgorithmPtr owner = handle.owner();
  SparseWeight& weight = handle.weight();
  const MaskSet mask = to_mask(given, weight.shape(), "the mask of '" + weight.name() + "'");
  const py::gil_scoped_release released;
  (owner.get()->*&AlgorithmAccess::set_mask)(weight, mask, nullptr);
}

// As the class that Python's is derived from, or that it is.
py::array mask_of(DynamicSparsityAlgorithm& algorithm, const WeightHandle& handle,
                  const py::object& given, float sparsity) {
  const SparseWeight& weight = handle.weight();
  const MaskSet mask = to_mask(given, weight.shape(), "update_mask: the mask");
  auto* own = dynamic_cast<OwnBase*>(&algorithm);
  return to_array(own != nullptr
                      ? own->mask_of_base(weight, mask, sparsity)
                      : (algorithm.*&DynamicAccess::update_mask)(weight, mask, sparsity));
}

bool wants_dense_gradient(const DynamicSparsityAlgorithm& algorithm, int64_t step) {
  const auto* own = dynamic_cast<const OwnBase*>(&algorithm);
  return own != nullptr ? own->base_wants_dense_gradient(step)
                        : (algorithm.*&DynamicAccess::wants_dense_gradient)(step);
}

int64_t kept_after_drop(const WeightHandle& handle, float fraction, int64_t nnz) {
  if (!(fraction >= 0.0f && fraction <= 1.0f)) {
    throw ConfigError(
        fmt::format("kept_after_drop: drop_fraction must be from 0 to 1, found {}", fraction));
  }
  if (nnz < 0)
    throw ConfigError(fmt::format("kept_after_drop: nnz must not be negative, found {}", nnz));
  return handle.weight().selector().kept_after_drop(fraction, nnz);
}

void bind_weight(py::module_& module) {
  py::class_<WeightHandle>(module, "SparseWeight",
                           "A parameter that an algorithm manages. It has all attributes of the "
                           "parameter and the ones below.")
      .def_readonly("parameter", &WeightHandle::parameter)
      .def_readonly("param", &WeightHandle::parameter)
      .def_property_readonly("target_sparsity",
                             [](const WeightHandle& h) { return h.weight().target_sparsity(); })
      .def_property_readonly(
          "target_nnz", [](const WeightHandle& h) { return h.weight().target_nnz(); },
          "Target number of nonzeros at this update.")
      .def_property(
          "mask", [](const WeightHandle& h) { return to_array(h.weight().mask()); },
          &set_mask_of_handle,
          "The present mask. Assigning one counts as an update of the algorithm: hooks are called, "
          "and the update is recorded.")
      .def_property_readonly(
          "elements", [](const WeightHandle& h) { return h.weight().elements(); },
          "Copy of the values at the mask's positions, in ascending order of positions.")
      .def_property_readonly(
          "magnitudes", [](const WeightHandle& h) { return h.weight().magnitudes(); },
          "Absolute values of `elements`: a copy in the same order.")
      .def_property_readonly(
          "dense_grad",
          [](const WeightHandle& h) {
            return dense_gradient(dynamic_owner(h.owner()), h.weight());
          },
          "The gradient at every position. Available if wants_dense_gradient returned True for "
          "this step; otherwise raises StateError.")
      .def("kept_after_drop", &kept_after_drop, py::arg("drop_fraction"), py::arg("nnz"),
           "Returns how many of nnz positions remain after this fraction is dropped, rounded as in "
           "all algorithms. Raises ConfigError.")
      .def(
          "keep",
          [](const WeightHandle& h, const py::object& mask, const Tensor& scores, int64_t count) {
            return to_array(keep_largest(h, mask, scores, count));
          },
          py::arg("mask"), py::arg("scores"), py::arg("count"),
          "Returns the `count` positions of a mask that have the largest scores. scores: in the "
          "weight's shape, or one for each position of the mask. If scores are equal, the lower "
          "index stays. Score groups and patterns are respected.")
      .def(
          "grow_maximum",
          [](const WeightHandle& h, const py::object& mask, const Tensor& scores, int64_t count) {
            return to_array(grow_largest(h, mask, scores, count));
          },
          py::arg("mask"), py::arg("scores"), py::arg("count"),
          "Returns the mask with positions of the largest |score| added, until it has `count` "
          "positions.")
      .def(
          "grow_random",
          [](const WeightHandle& h, const py::object& mask, const CounterRng& rng, int64_t count) {
            return to_array(grow_random(h, mask, rng, count));
          },
          py::arg("mask"), py::arg("rng"), py::arg("count"),
          "Returns the mask with uniformly drawn positions added, until it has `count` positions.")
      .def(
          "__array__",
          [](const WeightHandle& h, const py::object& dtype) {
            return py::cast(h.parameter).attr("__array__")(dtype);
          },
          py::arg("dtype") = py::none())
      .def("__getattr__", [](const WeightHandle& h, const std::string& name) -> py::object {
        return py::cast(h.parameter).attr(name.c_str());
      });
}

void bind_classes(py::module_& module) {
  using Dynamic = DynamicSparsityAlgorithm;
  py::class_<Dynamic, SparsityAlgorithm, OwnDynamicAlgorithm<Dynamic>, std::shared_ptr<Dynamic>>
      dynamic(module, "DynamicSparsityAlgorithm",
              "The base class of algorithms that change masks at the steps of an update schedule. "
              "A subclass defines update_mask(self, p, mask, sparsity), which returns the next "
              "mask of the weight p, bool in its shape. Positions in both masks keep value and "
              "optimizer states; new ones start at zero. The algorithm `dynamic` of configurations "
              "is another one: configure({'algorithm': 'dynamic', ...}) makes it.");
  dynamic
      .def(py::init([](const py::object& sparsity, const py::object& update,
                       const py::kwargs& keywords) {
             py::kwargs keys(keywords);
             if (!update.is_none()) keys["update"] = update;
             return new OwnDynamicAlgorithm<Dynamic>(
                 options_of(AlgorithmKeys(sparsity, keys), false));
           }),
           py::arg("sparsity") = py::none(), py::arg("update") = py::none())
      .def("update_mask", &mask_of, py::arg("p"), py::arg("mask"), py::arg("sparsity"),
           "Returns the next mask of a weight; called at each update.")
      .def("wants_dense_gradient", &wants_dense_gradient, py::arg("step"),
           "Override it to return True for the steps at which update_mask reads p.dense_grad.")
      .def(
          "rng",
          [](const Dynamic& s, const WeightHandle& handle, const std::string& purpose) {
            return (s.*&DynamicAccess::rng)(handle.weight(), purpose.c_str());
          },
          py::arg("p"), py::arg("purpose") = "/grow",
          "Random numbers for a weight at this step. A resumed run draws the same numbers.");
  bind_dynamic_calls(dynamic);
  py::class_<Set, Dynamic, OwnDropGrow<Set>, std::shared_ptr<Set>>(
      module, "SET",
      "Drops the smallest |w|, and grows positions at random. A subclass can define grow(self, p, "
      "kept, count), which returns the mask `kept` with positions added until there are `count`.")
      .def(py::init(
               [](const py::object& sparsity, const py::kwargs& keywords) {
                 const AlgorithmKeys keys(sparsity, keywords);
                 if (!keys.has_functions()) return configured<Set>(keys, "set");
                 return std::make_shared<Set>(options_of(keys, true));
               },
               [](const py::object& sparsity, const py::kwargs& keywords) {
                 return new OwnDropGrow<Set>(options_of(AlgorithmKeys(sparsity, keywords), true));
               }),
           py::arg("sparsity") = py::none());
}

std::unique_ptr<SparsityAlgorithm> make_named(const py::object& factory, const Config& entry,
                                              uint64_t seed) {
  Config keys = entry.clone();
  for (const char* name : {"algorithm", "type", "until"}) keys.erase(name);
  entry.mark_read();
  const py::gil_scoped_acquire gil;
  try {
    return std::make_unique<SharedAlgorithm>(owned_algorithm(factory(from_config(keys), seed)));
  } catch (py::error_already_set& error) {
    // An error of the keys is one of the configuration, which knows where they stand.
    const py::object config_error = py::module_::import("lacuna._lacuna").attr("ConfigError");
    if (!error.matches(config_error) && !error.matches(PyExc_TypeError)) throw;
    throw ConfigError(py::str(error.value()).cast<std::string>());
  }
}

}  // namespace

StateDict state_of(const SparsityAlgorithm& algorithm) {
  const auto* own = dynamic_cast<const OwnBase*>(&algorithm);
  return own != nullptr ? own->state_of_base() : algorithm.state_dict();
}

void load_state(SparsityAlgorithm& algorithm, const StateDict& state) {
  auto* own = dynamic_cast<OwnBase*>(&algorithm);
  own != nullptr ? own->load_state_of_base(state) : algorithm.load_state_dict(state);
}

OwnBase::OwnBase() { own_algorithms().push_back(this); }

OwnBase::~OwnBase() { std::erase(own_algorithms(), this); }

bool is_own_dynamic(const SparsityAlgorithm& algorithm) {
  using Own = OwnDynamicAlgorithm<DynamicSparsityAlgorithm>;
  return dynamic_cast<const Own*>(&algorithm) != nullptr;
}

bool defines_update(SparsityAlgorithm& algorithm) {
  const py::object self = python_object(algorithm);
  const py::object of_base = py::type::of<SparsityAlgorithm>().attr("update");
  const py::object of_class = py::type::of(self).attr("update");
  return !of_class.is(of_base) || self.attr("__dict__").contains("update");
}

void call_update(const py::function& override, Optimizer& optimizer) {
  const bool is_method = PyMethod_Check(override.ptr()) != 0;
  const py::object function = is_method ? override.attr("__func__") : py::object(override);
  if (PyFunction_Check(function.ptr())) {
    const py::object code = function.attr("__code__");
    const bool takes_any = (code.attr("co_flags").cast<int>() & CO_VARARGS) != 0;
    const int least = is_method ? 1 : 0;
    if (!takes_any && code.attr("co_argcount").cast<int>() == least) {
      override();
      return;
    }
  }
  override(py::cast(&optimizer, py::return_value_policy::reference));
}

bool set_mask_by_own(const Parameter& parameter, const MaskSet& mask) {
  for (OwnBase* own : own_algorithms()) {
    SparsityAlgorithm& algorithm = own->algorithm();
    for (SparseWeight& weight : AlgorithmAccess::weights_of(algorithm)) {
      if (&weight.parameter() != &parameter) continue;
      const py::gil_scoped_release released;
      (algorithm.*&AlgorithmAccess::set_mask)(weight, mask, nullptr);
      return true;
    }
  }
  return false;
}

std::string name_of_class(const SparsityAlgorithm& algorithm) {
  const py::gil_scoped_acquire gil;
  const py::object self = py::cast(&algorithm, py::return_value_policy::reference);
  const py::object kind = py::type::of(self);
  // A class's own: those derived from a class that has one are others.
  const py::object registered = kind.attr("__dict__").attr("get")("_lacuna_name");
  return py::str(registered.is_none() ? py::object(kind.attr("__name__")) : registered);
}

AlgorithmPtr WeightHandle::owner() const {
  AlgorithmPtr owner = algorithm.lock();
  if (owner == nullptr) {
    throw StateError("the algorithm of '" + parameter->name() + "' no longer exists");
  }
  return owner;
}

SparseWeight& WeightHandle::weight() const {
  for (SparseWeight& weight : AlgorithmAccess::weights_of(*owner())) {
    if (weight.pointer() == parameter) return weight;
  }
  throw StateError("'" + parameter->name() + "' is no longer under its algorithm");
}

py::object weight_object(SparsityAlgorithm& algorithm, const SparseWeight& weight) {
  const py::object self = py::cast(&algorithm, py::return_value_policy::reference);
  return py::cast(WeightHandle{self.cast<AlgorithmPtr>(), weight.pointer()});
}

py::list weights_of(const AlgorithmPtr& algorithm) {
  py::list all;
  for (const SparseWeight& weight : AlgorithmAccess::weights_of(*algorithm)) {
    all.append(WeightHandle{algorithm, weight.pointer()});
  }
  return all;
}

void bind_own_algorithms(py::module_& module) {
  bind_weight(module);
  bind_classes(module);
  module.def(
      "_register_algorithm",
      [](const std::string& name, const std::string& help, const py::object& factory) {
        const auto kept = keep(factory);
        algorithm_registry().add(
            name, help, AlgorithmType{[kept](const Config& entry, uint64_t seed) {
              py::gil_scoped_acquire gil;
              return make_named(py::reinterpret_borrow<py::object>(
                                    static_cast<PyObject*>(const_cast<void*>(kept.get()))),
                                entry, seed);
            }});
      },
      py::arg("name"), py::arg("help"), py::arg("factory"));
  module.def(
      "_set_algorithm_lookup",
      [](const py::object& lookup) {
        set_algorithm_lookup([kept = keep(lookup)](const std::string& name) {
          const py::gil_scoped_acquire gil;
          const auto function = py::reinterpret_borrow<py::object>(
              static_cast<PyObject*>(const_cast<void*>(kept.get())));
          return function(name).cast<std::string>();
        });
      },
      py::arg("lookup"));
}

}  // namespace lacuna::python
