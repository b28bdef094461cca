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
// read where some of them are functions; null where it takes none.
template <class Kind, class Base = SparsityAlgorithm>
void bind_kind(py::module_& module, const char* name, const char* type, ReadOptions read,
               const char* doc) {
  py::class_<Kind, Base, std::shared_ptr<Kind>>(module, name, doc)
      .def(py::init([type, read](const py::object& sparsity, const py::kwargs& keywords) {
             const AlgorithmKeys keys(sparsity, keywords);
             if (!keys.has_functions()) return configured<Kind>(keys, type);
             if constexpr (std::is_constructible_v<Kind, SparsityOptions>) {
               SparsityOptions options = read(keys.entry, keys.seed);
               keys.put_functions_into(options);
               keys.entry.require_all_read();
               return std::make_shared<Kind>(std::move(options));
             } else {
               throw ConfigError(std::string(type) +
                                 " takes no functions for init_method and param_filter");
             }
           }),
           py::arg("sparsity") = py::none());
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
    if (one.get() == &parameter) return py::cast(one);
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
    throw StateError("update needs the optimizer: the algorithm has been applied to none");
  }
  const py::object model = py::getattr(python_object(algorithm), "_model", py::none());
  if (!model.is_none() && model().is_none()) {
    throw StateError("the model that '" + std::string(algorithm.type()) + "' changes is gone");
  }
  auto& one = optimizer.cast<Optimizer&>();
  const py::gil_scoped_release released;
  algorithm.update(one);
}

// By full name, or all of a module's or an optimizer's.
py::dict sparse_parameters(SparsityAlgorithm& algorithm, const py::object& of) {
  py::dict all;
  std::vector<ParameterPtr> among = algorithm.parameters();
  if (!of.is_none()) {
    const bool is_module = py::isinstance<Module>(of);
    const auto theirs =
        is_module ? of.cast<Module&>().parameters() : of.cast<Optimizer&>().parameters();
    std::erase_if(
        among, [&](const ParameterPtr& p) { return std::ranges::find(theirs, p) == theirs.end(); });
  }
  for (const ParameterPtr& p : among) all[py::str(p->name())] = p;
  return all;
}

void bind_base(py::module_& module) {
  py::class_<SparsityAlgorithm, OwnAlgorithm<SparsityAlgorithm>, AlgorithmPtr>(
      module, "SparsityAlgorithm", py::dynamic_attr(),
      "Makes parameters sparse and keeps them so. Use: model.apply(s), then optimizer.apply(s). A "
      "subclass defines update(self, optimizer), called after each step, which has been counted.")
      .def(py::init([](const py::object& sparsity, const py::kwargs& keywords) {
             const AlgorithmKeys keys(sparsity, keywords);
             SparsityOptions options = static_options(keys.entry, keys.seed);
             keys.put_functions_into(options);
             keys.entry.require_all_read();
             return new OwnAlgorithm<SparsityAlgorithm>(std::move(options));
           }),
           py::arg("sparsity") = py::none())
      .def("apply", &apply, py::arg("target"), "What target.apply(self) does.")
      .def("update", &update, py::arg("optimizer") = py::none(),
           "Counts a step, and changes masks where it is time to; each optimizer step ends with it "
           "while autoupdate is on.")
      .def_readwrite("autoupdate", &SparsityAlgorithm::autoupdate)
      .def_property_readonly("type",
                             [](const SparsityAlgorithm& s) { return std::string(s.type()); })
      .def_property_readonly("step", &SparsityAlgorithm::step, "Steps counted so far.")
      .def_property_readonly("updates", &SparsityAlgorithm::updates, "Updates made so far.")
      .def_property_readonly(
          "sparse_params", [](SparsityAlgorithm& s) { return sparse_parameters(s, py::none()); },
          "The parameters that it manages, by name.")
      .def_property_readonly("weights", &weights_of,
                             "The weights that it manages, for update(): SparseWeights.")
      .def_property_readonly("num_sparse_params",
                             [](const SparsityAlgorithm& s) { return s.parameters().size(); })
      .def("get_sparse_params", &sparse_parameters, py::arg("of"),
           "Those of a module or an optimizer.")
      .def("target_sparsity", &SparsityAlgorithm::target_sparsity, py::arg("parameter"),
           "The sparsity aimed at for a parameter at the last update. Raises StateError.")
      .def_property_readonly(
          "last_update", [](const SparsityAlgorithm& s) { return described_all(s.last_update()); },
          "What the last step's update did, a dict for each parameter; empty if it made none.")
      .def(
          "plan",
          [](const SparsityAlgorithm& s, int64_t steps) { return described_all(s.plan(steps)); },
          py::arg("steps"), "What a run of so many steps will do, a dict for each parameter.")
      .def(
          "register_target_sparsity_hook",
          [](SparsityAlgorithm& s,
             const std::function<void(py::object, const std::string&, double)>& hook) {
            return s.register_target_sparsity_hook(
                [hook](SparsityAlgorithm& algorithm, const std::string& names, double target) {
                  const py::gil_scoped_acquire gil;
                  hook(python_object(algorithm), names, target);
                });
          },
          py::arg("hook"),
          "Calls hook(algorithm, names, target) at the first mask and at every update; returns a "
          "handle whose remove() ends it.")
      .def(
          "register_computed_sparsity_hook",
          [](SparsityAlgorithm& s,
             const std::function<void(py::object, py::object, double)>& hook) {
            return s.register_computed_sparsity_hook(
                [hook](SparsityAlgorithm& algorithm, const Parameter& parameter, double actual) {
                  const py::gil_scoped_acquire gil;
                  hook(python_object(algorithm), parameter_object(algorithm, parameter), actual);
                });
          },
          py::arg("hook"), "Calls hook(algorithm, parameter, actual) for every mask.")
      .def("state_dict", &SparsityAlgorithm::state_dict,
           "Everything but masks and values, which are in the model's state.")
      .def("load_state_dict", &SparsityAlgorithm::load_state_dict, py::arg("state"),
           "Raises CheckpointError.")
      .def("__reduce__", [](const SparsityAlgorithm&) -> py::object {
        throw py::type_error("an algorithm cannot be pickled; pickle its state_dict()");
      });
}

void add_to_group(Group& group, const py::object& filter, const py::object& algorithm) {
  if (py::isinstance<Group>(algorithm)) {
    throw StateError("a group cannot hold a group; merge them with extend()");
  }
  const AlgorithmPtr owned = owned_algorithm(algorithm);
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
      "Several algorithms, each for the parameters that its filter chooses; the first that matches "
      "has a parameter: Group({'fc1.*': Static(0.9), 'fc2.*': SET(0.8)}).")
      .def(py::init(&make_group), py::arg("groups") = py::none())
      .def("add", &add_to_group, py::arg("filter"), py::arg("algorithm"),
           "filter: a glob, a list of globs, or f(name, parameter). Raises StateError.")
      .def(
          "extend", [](Group& group, Group& other) { group.extend(std::move(other)); },
          py::arg("group"), "Takes over the entries of another group.")
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

AlgorithmKeys::AlgorithmKeys(const py::object& sparsity, const py::kwargs& keywords) {
  py::dict keys(keywords);
  if (!sparsity.is_none()) keys["sparsity"] = sparsity;
  const auto take = [&](const char* name, py::object* into) {
    if (!keys.contains(name) || !PyCallable_Check(py::object(keys[name]).ptr())) return;
    *into = keys[name];
    PyDict_DelItemString(keys.ptr(), name);
  };
  take("init_method", &init_method);
  take("param_filter", &param_filter);
  if (keys.contains("seed")) {
    seed = keys["seed"].cast<uint64_t>();
    PyDict_DelItemString(keys.ptr(), "seed");
  }
  entry = to_config_with_callables(keys);
  if (entry.is_null()) entry = Config::map();
}

void AlgorithmKeys::put_functions_into(SparsityOptions& options) const {
  if (!init_method.is_none()) {
    options.init_method = InitMethod([kept = keep(init_method)](const MaskInitRequest& request) {
      const py::gil_scoped_acquire gil;
      const auto function =
          py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(kept.get())));
      const std::string what = "init_method for '" + request.parameter.name() + "'";
      return to_mask(function(to_array(request.parameter.to_dense()), request.sparsity),
                     request.parameter.shape(), what);
    });
  }
  if (!param_filter.is_none()) options.param_filter = to_filter(param_filter);
}

ParameterFilter to_filter(const py::object& given) {
  if (py::isinstance<py::str>(given)) return ParameterFilter({given.cast<std::string>()});
  if (given.is_none()) return {};
  if (!PyCallable_Check(given.ptr()))
    return ParameterFilter(given.cast<std::vector<std::string>>());
  return ParameterFilter([kept = keep(given)](const std::string& name, const Parameter& parameter) {
    const py::gil_scoped_acquire gil;
    const auto function =
        py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    return function(name, known_parameter(parameter)).cast<bool>();
  });
}

void bind_sparsity(py::module_& module) {
  bind_base(module);
  bind_own_algorithms(module);
  bind_kind<Static>(module, "Static", "static", static_options,
                    "A mask made once by init_method and kept.");
  bind_kind<Gmp, DynamicSparsityAlgorithm>(
      module, "GMP", "gmp", dynamic_options,
      "Gradual magnitude pruning: keeps the largest |w| to a rising target.");
  bind_kind<Saliency, Gmp>(module, "Saliency", "saliency", dynamic_options,
                           "Gradual pruning by |w * gradient|.");
  bind_kind<RigL, Set>(module, "RigL", "rigl", drop_grow_options,
                       "Drops the smallest |w|, regrows where |dense gradient| is largest.");
  bind_kind<StraightThrough, DynamicSparsityAlgorithm>(module, "STE", "ste", dynamic_options,
                                                       "Gradual pruning of a dense shadow weight.");
  bind_kind<SemiSparse, StraightThrough>(
      module, "SemiSparse", "semi_sparse", nullptr,
      "An N:M or block pattern of a dense master weight, chosen every step.");
  bind_kind<AcDc, DynamicSparsityAlgorithm>(module, "AcDc", "acdc", dynamic_options,
                                            "Alternates compressed and dense training.");
  bind_kind<Snfs>(module, "SNFS", "snfs", nullptr,
                  "Drops the smallest |w|, regrows and redistributes by |momentum|.");
  bind_kind<Snip>(module, "SNIP", "snip", nullptr,
                  "Prunes once, at the first step, by |w * gradient|.");
  bind_group(module);
  module.def(
      "configure",
      [](const py::object& description, uint64_t seed) {
        Config config = to_config_with_callables(description);
        std::unique_ptr<SparsityAlgorithm> made = configure(config, seed);
        config.require_all_read();
        if (made == nullptr) return py::object(py::none());
        if (const auto* shared = dynamic_cast<SharedAlgorithm*>(made.get())) {
          return python_object(*shared->algorithm());
        }
        return py::cast(AlgorithmPtr(std::move(made)));
      },
      py::arg("config"), py::arg("seed") = 0,
      "The algorithm of a configuration's section `sparsity`: a number, a dict, a list of dicts, "
      "or {'phases': [...]}; None for None. Raises ConfigError.");
}

}  // namespace lacuna::python
