// Sparsity algorithms that are built in, groups of them, and what all algorithms have.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "handles.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/acdc.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/gmp.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/semi_sparse.h"
#include "lacuna/sparsity/set.h"
#include "lacuna/sparsity/snfs.h"
#include "lacuna/sparsity/snip.h"
#include "lacuna/sparsity/static.h"
#include "lacuna/sparsity/straight_through.h"
#include "own_algorithms.hpp"
#include "sparsity_binding.hpp"

namespace lacuna::python {
namespace {

using AlgorithmPtr = std::shared_ptr<SparsityAlgorithm>;

using ReadOptions = SparsityOptions (*)(const Config& entry, uint64_t seed);

SparsityOptions static_options(const Config& entry, uint64_t seed) {
  return SparsityOptions::from_config(entry, seed);
}

// A class whose keywords are the keys of its entry in a configuration. `read`: how its options are
// read where some of them are functions. `Own`: what a class in Python that is derived from it is.
template <class Kind, class Base, class Own>
void bind_kind(py::module_& module, const char* name, const char* type, ReadOptions read,
               const char* doc) {
  const auto options_of = [read](const AlgorithmKeys& keys) {
    SparsityOptions options = read(keys.entry, keys.seed);
    keys.put_functions_into(options);
    keys.entry.require_all_read();
    return options;
  };
  py::class_<Kind, Base, Own, std::shared_ptr<Kind>>(module, name, doc)
      .def(py::init(
               [type, options_of](const py::object& sparsity, const py::kwargs& keywords) {
                 const AlgorithmKeys keys(sparsity, keywords);
                 if (!keys.has_functions()) return configured<Kind>(keys, type);
                 return std::make_shared<Kind>(options_of(keys));
               },
               [options_of](const py::object& sparsity, const py::kwargs& keywords) {
                 return new Own(options_of(AlgorithmKeys(sparsity, keywords)));
               }),
           py::arg("sparsity") = py::none());
}

// One whose updates are its own alone.
template <class Kind, class Base = SparsityAlgorithm>
void bind_closed_kind(py::module_& module, const char* name, const char* type, const char* doc) {
  py::class_<Kind, Base, std::shared_ptr<Kind>> cls(module, name, doc);
  cls.def(py::init([type](const py::object& sparsity, const py::kwargs& keywords) {
            const AlgorithmKeys keys(sparsity, keywords);
            if (!keys.has_functions()) return configured<Kind>(keys, type);
            throw ConfigError(std::string(type) +
                              " takes no functions for init_method and param_filter");
          }),
          py::arg("sparsity") = py::none());
  const py::cpp_function refuse([name](const py::object& subclass, const py::kwargs&) {
    for (const char* method : {"update", "update_mask", "grow"}) {
      if (subclass.attr("__dict__").contains(method)) {
        throw py::type_error(std::string(name) + ": a subclass cannot define " + method +
                             "(); derive from DynamicSparsityAlgorithm");
      }
    }
  });
  const auto classmethod = py::module_::import("builtins").attr("classmethod");
  cls.attr("__init_subclass__") = classmethod(refuse);
}

py::dict described(const MaskUpdate& update) {
  py::dict entries;
  entries["parameter"] = update.parameter;
  entries["target_sparsity"] = update.target_sparsity;
  entries["actual_sparsity"] = update.actual_sparsity;
  entries["nnz"] = update.nnz;
  entries["dropped"] = update.dropped;
  entries["grown"] = update.grown;
  entries["churn"] = update.churn;
  entries["ever_active"] = py::cast(update.ever_active);
  entries["dead_rows"] = update.dead_rows;
  entries["dead_columns"] = update.dead_columns;
  entries["layout"] = update.layout;
  return entries;
}

py::dict described(const PlannedParameter& planned) {
  py::dict entries;
  entries["parameter"] = planned.parameter;
  entries["shape"] = to_tuple(planned.shape);
  entries["algorithm"] = planned.algorithm;
  entries["chosen_by"] = planned.chosen_by;
  entries["initial_nnz"] = planned.initial_nnz;
  entries["final_nnz"] = planned.final_nnz;
  entries["update_steps"] = planned.update_steps;
  entries["layout"] = planned.layout;
  return entries;
}

template <class Values>
py::list described_all(const Values& values) {
  py::list all;
  for (const auto& value : values) all.append(described(value));
  return all;
}

py::object parameter_object(SparsityAlgorithm& algorithm, const Parameter& parameter) {
  for (const ParameterPtr& one : algorithm.parameters()) {
    if (one.get() == &parameter) return named_parameter(py::cast(one));
  }
  return py::str(parameter.name());
}

void apply(SparsityAlgorithm& algorithm, const py::object& target) {
  take_over_writes();
  const py::object self = python_object(algorithm);
  if (py::isinstance<Module>(target) || py::isinstance<Optimizer>(target)) {
    target.attr("apply")(self);
    return;
  }
  throw py::type_error("apply: expected a model or an optimizer, found " +
                       std::string(py::repr(target)));
}

void update(SparsityAlgorithm& algorithm, const py::object& given) {
  py::object optimizer = given;
  if (optimizer.is_none()) {
    const py::object self = python_object(algorithm);
    const py::object known = py::getattr(self, "_optimizer", py::none());
    if (!known.is_none()) optimizer = known();
  }
  if (optimizer.is_none()) {
    throw StateError("update needs an optimizer: the algorithm has not been applied to one");
  }
  const py::object model = py::getattr(python_object(algorithm), "_model", py::none());
  if (!model.is_none() && model().is_none()) {
    throw StateError("the model that '" + std::string(algorithm.type()) + "' changes is gone");
  }
  auto& one = optimizer.cast<Optimizer&>();
  // Python calls this where its class has no update(), or from the one that it has.
  if (auto* own = dynamic_cast<OwnBase*>(&algorithm)) return own->update_of_base(one);
  const py::gil_scoped_release released;
  algorithm.update(one);
}

// By full name, or all of a module's or an optimizer's; of a parameter's, itself.
py::object sparse_parameters(SparsityAlgorithm& algorithm, const py::object& of) {
  const std::vector<ParameterPtr>& managed = algorithm.parameters();
  if (py::isinstance<Parameter>(of)) {
    const bool is_managed = std::ranges::find(managed, of.cast<ParameterPtr>()) != managed.end();
    if (is_managed) return of;
    throw StateError("'" + of.cast<Parameter&>().name() + "' is not a parameter of '" +
                     std::string(algorithm.type()) + "'");
  }
  std::vector<ParameterPtr> among = managed;
  if (!of.is_none()) {
    const bool is_module = py::isinstance<Module>(of);
    const auto theirs =
        is_module ? of.cast<Module&>().parameters() : of.cast<Optimizer&>().parameters();
    std::erase_if(
        among, [&](const ParameterPtr& p) { return std::ranges::find(theirs, p) == theirs.end(); });
  }
  py::dict all;
  for (const ParameterPtr& p : among) all[named_parameter(py::cast(p))] = p;
  return all;
}

py::object numpy_float(double value) { return py::module_::import("numpy").attr("float64")(value); }

void bind_base(py::module_& module) {
  py::class_<SparsityAlgorithm, OwnAlgorithm<SparsityAlgorithm>, AlgorithmPtr> base(
      module, "SparsityAlgorithm", py::dynamic_attr(),
      "The base class of all algorithms: makes parameters sparse and keeps them sparse. Call "
      "model.apply(s), then optimizer.apply(s). A subclass defines update(self, optimizer), which "
      "is called after each step, once the step has been counted.");
  base.def(py::init([](const py::object& sparsity, const py::object& init_method,
                       const py::kwargs& keywords) {
             py::kwargs given(keywords);
             if (!init_method.is_none()) given["init_method"] = init_method;
             const AlgorithmKeys keys(sparsity, given);
             SparsityOptions options = static_options(keys.entry, keys.seed);
             keys.put_functions_into(options);
             keys.entry.require_all_read();
             return new OwnAlgorithm<SparsityAlgorithm>(std::move(options));
           }),
           py::arg("sparsity") = py::none(), py::arg("init_method") = py::none())
      .def("apply", &apply, py::arg("target"), "Calls target.apply(self).")
      .def("sparsify", &apply, py::arg("target"), "The same as `apply`.")
      .def("sparsify_module", &apply, py::arg("target"), "The same as `apply`.")
      .def("sparsify_optimizer", &apply, py::arg("target"), "The same as `apply`.")
      .def("__call__", &apply, py::arg("target"), "The same as `apply`.")
      .def("update", &update, py::arg("optimizer") = py::none(),
           "Counts a step, and changes the masks if an update is due. While `autoupdate` is true, "
           "each optimizer step calls it at its end.")
      .def_readwrite("autoupdate", &SparsityAlgorithm::autoupdate)
      .def_property_readonly("type",
                             [](const SparsityAlgorithm& s) { return std::string(s.type()); })
      .def_property_readonly("step", &SparsityAlgorithm::step, "Number of counted steps.")
      .def_property_readonly("updates", &SparsityAlgorithm::updates, "Number of updates so far.")
      .def_property_readonly(
          "sparse_params", [](SparsityAlgorithm& s) { return sparse_parameters(s, py::none()); },
          "The parameters that the algorithm manages, by name.")
      .def_property_readonly("weights", &weights_of,
                             "The managed weights, as SparseWeight objects, for use in update().")
      .def_property_readonly("num_sparse_params",
                             [](const SparsityAlgorithm& s) { return s.parameters().size(); })
      .def("get_sparse_params", &sparse_parameters, py::arg("of"),
           "Returns the sparse parameters of a module or an optimizer, by name. Returns a "
           "parameter itself if it is sparse, else raises StateError.")
      .def("target_sparsity", &SparsityAlgorithm::target_sparsity, py::arg("parameter"),
           "Returns the target sparsity of a parameter at the last update. Raises StateError.")
      .def_property_readonly(
          "last_update", [](const SparsityAlgorithm& s) { return described_all(s.last_update()); },
          "Results of the update in the last step, one dict per parameter; empty without one.")
      .def(
          "plan",
          [](const SparsityAlgorithm& s, int64_t steps) { return described_all(s.plan(steps)); },
          py::arg("steps"), "Predicts a run of this many steps: one dict per parameter.")
      .def(
          "register_target_sparsity_hook",
          [](SparsityAlgorithm& s,
             const std::function<void(py::object, const std::string&, py::object)>& hook) {
            return s.register_target_sparsity_hook(
                [hook](SparsityAlgorithm& algorithm, const std::string& names, double target) {
                  const AlgorithmCode code;
                  hook(python_object(algorithm), names, numpy_float(target));
                });
          },
          py::arg("hook"),
          "Calls hook(algorithm, names, target) at the first mask and at every update. Returns a "
          "handle; its remove() unregisters the hook.")
      .def(
          "register_computed_sparsity_hook",
          [](SparsityAlgorithm& s,
             const std::function<void(py::object, py::object, py::object)>& hook) {
            return s.register_computed_sparsity_hook(
                [hook](SparsityAlgorithm& algorithm, const Parameter& parameter, double actual) {
                  const AlgorithmCode code;
                  const py::object name = parameter_object(algorithm, parameter);
                  hook(python_object(algorithm), name, numpy_float(actual));
                });
          },
          py::arg("hook"),
          "Calls hook(algorithm, name, actual) with the resulting sparsity of every mask. name is "
          "a string that also has the parameter's attributes.")
      .def("__reduce__", [](const SparsityAlgorithm&) -> py::object {
        throw py::type_error("an algorithm cannot be pickled; pickle its state_dict()");
      });
  bind_algorithm_calls(module, base);
}

// Classes by their names.
py::object without_classes(const py::object& description) {
  if (py::isinstance<py::list>(description) || py::isinstance<py::tuple>(description)) {
    py::list all;
    for (const py::handle entry : description) {
      all.append(without_classes(py::reinterpret_borrow<py::object>(entry)));
    }
    return all;
  }
  if (!py::isinstance<py::dict>(description)) return description;
  const py::dict entry = description.attr("copy")();
  for (const char* key : {"algorithm", "type"}) {
    if (!entry.contains(key) || !PyType_Check(py::object(entry[key]).ptr())) continue;
    entry[key] = py::module_::import("lacuna.registry").attr("name_of_algorithm")(entry[key]);
  }
  return entry;
}

// What `configure` returns.
py::object configured_object(const py::object& description, uint64_t seed) {
  if (py::isinstance<SparsityAlgorithm>(description)) return description;
  Config config = to_config_with_callables(without_classes(description));
  std::unique_ptr<SparsityAlgorithm> made = configure(config, seed);
  config.require_all_read();
  if (made == nullptr) return py::none();
  if (const auto* shared = dynamic_cast<SharedAlgorithm*>(made.get())) {
    return python_object(*shared->algorithm());
  }
  return py::cast(AlgorithmPtr(std::move(made)));
}

void add_to_group(Group& group, const py::object& filter, const py::object& algorithm) {
  if (py::isinstance<Group>(algorithm)) {
    throw StateError("a group cannot hold a group; merge them with extend()");
  }
  const AlgorithmPtr owned = owned_algorithm(configured_object(algorithm, 0));
  if (owned->outer() != nullptr || !owned->parameters().empty()) {
    throw StateError("the algorithm '" + std::string(owned->type()) +
                     "' is in use already: in another group, or applied to a model");
  }
  group.add(to_filter(filter), std::make_unique<SharedAlgorithm>(owned));
}

// Entries of a group: a dict, or pairs.
std::shared_ptr<Group> make_group(const py::object& entries) {
  auto group = std::make_shared<Group>();
  if (entries.is_none()) return group;
  const bool is_dict = py::isinstance<py::dict>(entries);
  const py::object pairs = is_dict ? py::object(entries.attr("items")()) : entries;
  for (const py::handle entry : pairs) {
    const auto pair = entry.cast<std::pair<py::object, py::object>>();
    add_to_group(*group, pair.first, pair.second);
  }
  return group;
}

py::list members(Group& group) {
  py::list all;
  for (const auto& algorithm : group.algorithms()) all.append(python_object(*algorithm));
  return all;
}

void bind_group(py::module_& module) {
  py::class_<Group, SparsityAlgorithm, std::shared_ptr<Group>>(
      module, "Group",
      "Several algorithms with a filter each: Group({'fc1.*': Static(0.9), 'fc2.*': SET(0.8)}). A "
      "parameter belongs to the first one whose filter matches.")
      .def(py::init(&make_group), py::arg("groups") = py::none())
      .def(
          "add", &add_to_group, py::arg("filter"), py::arg("algorithm"),
          "Adds an algorithm for a glob, a list of globs or f(name, parameter). Raises StateError.")
      .def(
          "extend", [](Group& group, Group& other) { group.extend(std::move(other)); },
          py::arg("group"), "Moves the entries of another group into this one.")
      .def_property_readonly("algorithms", &members);
}

}  // namespace

py::object python_object(SparsityAlgorithm& algorithm) {
  if (auto* shared = dynamic_cast<SharedAlgorithm*>(&algorithm)) {
    return python_object(*shared->algorithm());
  }
  const py::object object = py::cast(&algorithm, py::return_value_policy::reference);
  // One that is made now, of a part that C++ owns, keeps what owns it.
  const bool is_new = Py_REFCNT(object.ptr()) == 1;
  if (is_new && algorithm.outer() != nullptr) {
    py::detail::keep_alive_impl(object, python_object(*algorithm.outer()));
  }
  return object;
}

std::shared_ptr<SparsityAlgorithm> owned_algorithm(const py::object& object) {
  auto* algorithm = object.cast<SparsityAlgorithm*>();
  if (algorithm == nullptr) throw py::type_error("expected a sparsity algorithm, found None");
  return {algorithm, [kept = keep(object)](SparsityAlgorithm*) {}};
}

void bind_sparsity(py::module_& module) {
  bind_base(module);
  bind_own_algorithms(module);
  using Dynamic = DynamicSparsityAlgorithm;
  bind_kind<Static, SparsityAlgorithm, OwnAlgorithm<Static>>(
      module, "Static", "static", static_options, "A fixed mask, made once by init_method.");
  bind_kind<Gmp, Dynamic, OwnDynamicAlgorithm<Gmp>>(
      module, "GMP", "gmp", dynamic_options,
      "Gradual magnitude pruning: keeps the largest |w| at a rising sparsity.");
  bind_kind<Saliency, Gmp, OwnDynamicAlgorithm<Saliency>>(
      module, "Saliency", "saliency", dynamic_options, "Gradual pruning by |w * gradient|.");
  bind_kind<RigL, Set, OwnDropGrow<RigL>>(
      module, "RigL", "rigl", drop_grow_options,
      "Drops the smallest |w|, and grows positions with the largest |dense gradient|.");
  bind_kind<StraightThrough, Dynamic, OwnDynamicAlgorithm<StraightThrough>>(
      module, "STE", "ste", dynamic_options,
      "Uses a dense master's largest weights, chosen at each update: pruned weights can return.");
  bind_kind<AcDc, Dynamic, OwnDynamicAlgorithm<AcDc>>(
      module, "AcDc", "acdc", dynamic_options, "Alternates between compressed and dense training.");
  bind_closed_kind<SemiSparse, StraightThrough>(module, "SemiSparse", "semi_sparse",
                                                "The largest values of a dense master weight in an "
                                                "N:M or block pattern, chosen at every step.");
  bind_closed_kind<Snfs>(module, "SNFS", "snfs",
                         "Drops the smallest |w|, and grows and redistributes by |momentum|.");
  bind_closed_kind<Snip>(module, "SNIP", "snip",
                         "Prunes once, at the first step, by |w * gradient|.");
  bind_group(module);
  module.def("configure", &configured_object, py::arg("config"), py::arg("seed") = 0,
             "Makes the algorithm that a configuration's section `sparsity` describes: a number, a "
             "dict, a list of dicts, or {'phases': [...]}. Returns None for None. Names of "
             "algorithms are those of built-in and registered algorithms and of subclasses (Name "
             "or module.Name); case does not matter. Raises ConfigError.");
}

}  // namespace lacuna::python
