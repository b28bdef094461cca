// What all algorithms have for those who write their own training: the schedule of their sparsity,
// their parameters and states, and other names of what they do.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "handles.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/set.h"
#include "own_algorithms.hpp"
#include "sparsity_binding.hpp"

namespace lacuna::python {
namespace {

using AlgorithmPtr = std::shared_ptr<SparsityAlgorithm>;

// What `algorithm.sparsity` is.
struct SparsityOf {
  AlgorithmPtr algorithm;

  const Schedule& schedule() const { return algorithm->sparsity().schedule(); }
  double at(int64_t step, int64_t updates) const {
    return algorithm->sparsity().sparsity_at(step, updates, Shape{1});
  }
  double now() const { return at(algorithm->step(), algorithm->updates()); }
};

const Parameter& parameter_of(const SparsityAlgorithm& algorithm, const py::object& key) {
  if (py::isinstance<WeightHandle>(key)) return *key.cast<const WeightHandle&>().parameter;
  if (py::isinstance<Parameter>(key)) return key.cast<const Parameter&>();
  const auto name = key.cast<std::string>();
  for (const ParameterPtr& p : algorithm.parameters()) {
    if (p->name() == name) return *p;
  }
  throw py::key_error(name);
}

double target_of(const SparsityOf& sparsity, const py::object& key) {
  return sparsity.algorithm->target_sparsity(parameter_of(*sparsity.algorithm, key));
}

std::string in_words(const SparsityOf& sparsity) {
  return sparsity.schedule().is_constant()
             ? std::string(py::str(py::float_(sparsity.schedule().value_at(0))))
             : std::string(py::str(from_config(sparsity.schedule().config())));
}

void bind_sparsity_of(py::module_& module) {
  py::class_<SparsityOf>(
      module, "Sparsity",
      "The target sparsity of an algorithm: s.sparsity[p] for a parameter or its name, "
      "s.sparsity(step) by its schedule, float(s.sparsity) at the present step.")
      .def("__getitem__", &target_of, py::arg("parameter"),
           "The target of a parameter at the last update. Raises StateError.")
      .def("__call__", &SparsityOf::at, py::arg("step"), py::arg("updates") = 0,
           "The target of the schedule at a step, after this many updates.")
      .def("__float__", &SparsityOf::now, "The target of the schedule at the present step.")
      .def(
          "__eq__",
          [](const SparsityOf& s, const py::object& other) {
            return s.schedule().is_constant() && py::float_(s.now()).equal(other);
          },
          py::arg("other"))
      .def_property_readonly(
          "default", [](const SparsityOf& s) { return s; },
          "The schedule. It is the same for all parameters.")
      .def("__repr__", &in_words);
}

void set_sparsity(SparsityAlgorithm& algorithm, const py::object& given) {
  py::dict keys;
  keys["sparsity"] = given;
  const AlgorithmKeys read{py::none(), py::kwargs(keys)};
  algorithm.set_sparsity(SparsityTarget::from_config(read.entry));
}

void initialize(SparsityAlgorithm& algorithm) {
  if (algorithm.parameters().empty()) {
    throw StateError("initialize: '" + std::string(algorithm.type()) +
                     "' has been applied to no model");
  }
  for (SparsityAlgorithm* part : algorithm.parts()) initialize(*part);
  if (!algorithm.parts().empty()) return;
  (algorithm.*&AlgorithmAccess::start_masks)(MaskSource::Made);
}

void visit_state(const AlgorithmPtr& algorithm, const py::function& function) {
  for (SparsityAlgorithm* part : algorithm->parts()) {
    python_object(*part).attr("visit_state")(function);
  }
  for (const py::handle weight : weights_of(algorithm)) {
    const py::object before = weight.attr("mask");
    const py::object after = function(before);
    if (after.is_none()) continue;
    const auto numpy = py::module_::import("numpy");
    if (!numpy.attr("array_equal")(before, after).cast<bool>()) py::setattr(weight, "mask", after);
  }
}

std::string describe_algorithm(const AlgorithmPtr& algorithm) {
  const py::object kind = py::type::of(python_object(*algorithm));
  const auto name = kind.attr("__name__").cast<std::string>();
  const std::string sparsity =
      algorithm->parts().empty() ? "sparsity=" + in_words(SparsityOf{algorithm}) + ", " : "";
  return fmt::format("{}({}parameters={}, step={})", name, sparsity, algorithm->parameters().size(),
                     algorithm->step());
}

py::object is_update_step(const std::shared_ptr<DynamicSparsityAlgorithm>& algorithm) {
  const auto make = py::module_::import("lacuna.names").attr("CallableInt");
  return make(algorithm->update_schedule().is_update(algorithm->step()),
              py::cpp_function([algorithm](int64_t step) {
                return algorithm->update_schedule().is_update(step);
              }));
}

py::object drop_fraction(const std::shared_ptr<DynamicSparsityAlgorithm>& algorithm) {
  const auto make = py::module_::import("lacuna.names").attr("CallableFloat");
  return make(DynamicAccess::drop_fraction_of(*algorithm),
              py::cpp_function([algorithm](int64_t step) {
                return DynamicAccess::fraction_at(*algorithm, step);
              }));
}

void set_drop_fraction(DynamicSparsityAlgorithm& algorithm, const py::object& given) {
  if (dynamic_cast<Set*>(&algorithm) == nullptr && !is_own_dynamic(algorithm)) {
    throw StateError("'" + std::string(algorithm.type()) + "' drops no fraction");
  }
  py::dict keys;
  keys["drop_fraction"] = given;
  const AlgorithmKeys read{py::none(), py::kwargs(keys)};
  algorithm.set_drop_fraction(*drop_grow_options(read.entry, 0).drop_fraction);
}

// Objects of built-in classes never look at such an attribute of theirs, so it is no use there.
void set_attribute(const py::object& algorithm, const std::string& name, const py::object& value) {
  const py::handle kind = py::type::handle_of(algorithm);
  const bool is_built_in = kind.attr("__module__").cast<std::string>() == "lacuna._lacuna";
  if (is_built_in && (name == "update" || name == "update_mask")) {
    throw py::type_error(
        fmt::format("'{0}' of a {1} cannot be assigned; override {0} in a subclass", name,
                    kind.attr("__name__").cast<std::string>()));
  }
  py::module_::import("builtins").attr("object").attr("__setattr__")(algorithm, name, value);
}

void release_optimizer(SparsityAlgorithm& algorithm) {
  algorithm.release_optimizer();
  python_object(algorithm).attr("_optimizer") = py::none();
}

void release(SparsityAlgorithm& algorithm) {
  take_over_writes();
  algorithm.release();
  const py::object self = python_object(algorithm);
  self.attr("_optimizer") = py::none();
  self.attr("_model") = py::none();
}

}  // namespace

void bind_dynamic_calls(py::object& dynamic) {
  using Dynamic = DynamicSparsityAlgorithm;
  auto& cls = static_cast<py::class_<Dynamic, std::shared_ptr<Dynamic>>&>(dynamic);
  cls.def_property_readonly(
         "is_update_step", &is_update_step,
         "Whether masks change at the present step. is_update_step(step) answers for another step.")
      .def_property("drop_fraction", &drop_fraction, &set_drop_fraction,
                    "The fraction to drop at the present step; drop_fraction(step) for another "
                    "step. Can be assigned a number or a schedule. Raises StateError.");
}

void bind_algorithm_calls(py::module_& module, py::object& base) {
  bind_sparsity_of(module);
  auto& cls = static_cast<py::class_<SparsityAlgorithm, std::shared_ptr<SparsityAlgorithm>>&>(base);
  cls.def_property(
         "sparsity", [](const AlgorithmPtr& s) { return SparsityOf{s}; }, &set_sparsity,
         "The target sparsity. Can be assigned a number, a schedule or f(step), which applies from "
         "the first masks or the next update on. Raises ConfigError; StateError if the algorithm "
         "makes masks only once and has made them.")
      .def("initialize", &initialize,
           "Makes the first masks again, from the present values. Raises StateError.")
      .def("visit_state", &visit_state, py::arg("function"),
           "Calls function(mask) for each mask. If it returns a mask instead of None, that mask is "
           "installed.")
      .def("release", &release,
           "Ends the algorithm's work on its model and optimizer: masks stay as they are. Raises "
           "StateError within one of its updates or hooks.")
      .def(
          "release_optimizer", &release_optimizer,
          "Undoes optimizer.apply(self), so that the algorithm can be applied to another optimizer "
          "of the same model. Until then, weights with a dense master (STE, SemiSparse) do not "
          "train. Raises StateError within one of its updates or hooks.")
      .def("state_dict", &state_of,
           "Returns the state of the algorithm. Masks and values are in the model's state.")
      .def("load_state_dict", &load_state, py::arg("state"),
           "Restores what `state_dict` returned. Raises CheckpointError.")
      .def_property_readonly("num_sparse_parameters",
                             [](const SparsityAlgorithm& s) { return s.parameters().size(); })
      .def("__setattr__", &set_attribute)
      .def("__repr__", &describe_algorithm);
}

}  // namespace lacuna::python
