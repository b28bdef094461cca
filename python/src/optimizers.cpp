// Optimizers, and their states as NumPy arrays.
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "callables.hpp"
#include "handles.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/optimizer.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna::python {
namespace {

using OptimizerPtr = std::shared_ptr<Optimizer>;

OptimizerPtr make(const Config& config, std::vector<ParameterPtr> parameters) {
  OptimizerPtr optimizer = make_optimizer(config, std::move(parameters));
  config.require_all_read();
  return optimizer;
}

// Of a class of its own, with the keys of its section as keywords.
template <class Kind>
void bind_kind(py::module_& module, const char* name, const char* type, const char* doc) {
  py::class_<Kind, Optimizer, std::shared_ptr<Kind>>(module, name, doc)
      .def(py::init([type](std::vector<ParameterPtr> parameters, const py::object& lr,
                           const py::kwargs& options) {
             py::dict keys(options);
             keys["type"] = type;
             if (!lr.is_none()) keys["lr"] = lr;
             const Config config = to_config_with_callables(keys);
             return std::static_pointer_cast<Kind>(make(config, std::move(parameters)));
           }),
           py::arg("params"), py::arg("lr") = py::none());
}

Parameter& parameter_of(Optimizer& optimizer, const py::object& key) {
  for (const ParameterPtr& p : optimizer.parameters()) {
    if (py::isinstance<py::str>(key) ? p->name() == key.cast<std::string>()
                                     : p == key.cast<ParameterPtr>()) {
      return *p;
    }
  }
  throw StateError("the optimizer does not train " + std::string(py::repr(key)));
}

// The states that an optimizer keeps, which are protected.
struct OptimizerAccess : Optimizer {
  static void make_states(const Optimizer& optimizer, Parameter& parameter) {
    constexpr auto kSlots = &OptimizerAccess::state_slots;
    for (const StateSlot& slot : (optimizer.*kSlots)()) {
      if (parameter.slots().contains(slot.name)) continue;
      slot.requires_dense ? (void)parameter.dense_slot(slot.name) : (void)parameter.slot(slot.name);
    }
  }
};

// Arrays over the states there are; `made`: all, made where they are not yet. Who has them may
// write into them.
py::dict states_of(Optimizer& optimizer, const py::object& key, bool made) {
  py::dict arrays;
  Parameter& parameter = parameter_of(optimizer, key);
  if (made) {
    optimizer.begin_states(parameter);
    OptimizerAccess::make_states(optimizer, parameter);
  }
  if (!optimizer.has_begun(parameter)) return arrays;
  for (auto& [name, slot] : parameter.slots()) {
    if (slot.values.defined()) arrays[py::str(name)] = to_array(slot.values);
  }
  return arrays;
}

Slot& slot_of(Optimizer& optimizer, const py::object& key, const std::string& name) {
  Parameter& parameter = parameter_of(optimizer, key);
  const auto found = parameter.slots().find(name);
  if (optimizer.has_begun(parameter) && found != parameter.slots().end()) return found->second;
  throw StateError(
      fmt::format("parameter '{}' has no state '{}' yet: states are made by its first step",
                  parameter.name(), name));
}

void set_requires_dense(Optimizer& optimizer, const py::object& key, const std::string& name,
                        bool dense) {
  Parameter& parameter = parameter_of(optimizer, key);
  Slot& slot = slot_of(optimizer, key, name);
  if (slot.requires_dense == dense) return;
  if (!parameter.pattern()->stores_every_position()) {
    throw StateError(fmt::format(
        "state '{}' of parameter '{}' cannot be dense in layout '{}', which stores nonzeros alone: "
        "give the algorithm layout=\"masked\"",
        name, parameter.name(), parameter.pattern()->layout().name()));
  }
  slot.requires_dense = dense;
  if (!dense) parameter.prune();
}

// A hook of Python's, which may take what PyTorch's hooks get.
std::function<void(Optimizer&)> step_hook(const py::function& hook) {
  return [kept = keep(hook), takes_three = required_arguments(hook) == 3](Optimizer& optimizer) {
    const AlgorithmCode code;
    const auto function =
        py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    const py::object self = py::cast(&optimizer, py::return_value_policy::reference);
    takes_three ? function(self, py::tuple(), py::dict()) : function(self);
  };
}

std::string describe_optimizer(const Optimizer& optimizer) {
  return fmt::format("Optimizer('{}', parameters={}, steps={}, lr={:.6g})", optimizer.type(),
                     optimizer.parameters().size(), optimizer.steps(), optimizer.lr());
}

}  // namespace

void bind_optimizers(py::module_& module) {
  py::class_<HookHandle>(module, "Hook", "A registered hook. remove() unregisters it.")
      .def("remove", &HookHandle::remove);
  py::class_<Optimizer, OptimizerPtr>(module, "Optimizer", py::dynamic_attr(),
                                      "Updates parameters from their gradients.")
      .def(
          "step",
          [](Optimizer& o) {
            take_over_writes();
            const py::gil_scoped_release released;
            o.step();
          },
          "Updates all parameters that have a gradient, then the masks if an update is due. Raises "
          "ConfigError if the learning rate is below 0, before anything is changed.")
      .def("zero_grad", &Optimizer::zero_grad, ReleaseGil(), "Drops all gradients.")
      .def(
          "apply",
          [](const py::object& self, const py::object& algorithm) {
            auto& optimizer = self.cast<Optimizer&>();
            auto& sparsity = algorithm.cast<SparsityAlgorithm&>();
            {
              const py::gil_scoped_release released;
              optimizer.apply(sparsity);
            }
            algorithm.attr("_optimizer") = py::weakref(self);  // for algorithm.update()
            // An algorithm may refer to its model, which keeps it; so the optimizer keeps both.
            const py::object model = py::getattr(algorithm, "_model", py::none());
            if (!model.is_none()) py::detail::keep_alive_impl(self, model());
          },
          py::arg("algorithm"), py::keep_alive<1, 2>(),
          "Makes a sparsity algorithm update its masks after each step. The algorithm must have "
          "been applied to the model before. Raises StateError.")
      .def_property_readonly("type", [](const Optimizer& o) { return std::string(o.type()); })
      .def_property_readonly("steps", &Optimizer::steps, "Number of steps done so far.")
      .def_property_readonly("lr", &Optimizer::lr, "Learning rate of the next step.")
      .def_property_readonly("parameters", &Optimizer::parameters)
      .def_property_readonly(
          "state",
          [](const py::object& self) {
            return py::module_::import("lacuna.states").attr("States")(self);
          },
          "The states of parameters; p is a parameter or its name. state(p) is a dict of the "
          "existing states by name, such as 'exp_avg'; it is empty before the first step. state[p] "
          "has all states, and creates missing ones as zeros. The arrays are not copies, and are "
          "stored like the parameter's values. state[p]['exp_avg'].requires_dense = True keeps a "
          "state at every position, whatever the mask.")
      .def("_states", &states_of, py::arg("parameter"), py::arg("made"))
      .def(
          "requires_dense",
          [](Optimizer& o, const py::object& key, const std::string& name) {
            return slot_of(o, key, name).requires_dense;
          },
          py::arg("parameter"), py::arg("state"), "Whether a state is kept at every position.")
      .def("set_requires_dense", &set_requires_dense, py::arg("parameter"), py::arg("state"),
           py::arg("dense") = true,
           "Keeps a state at every position, whatever the mask. Works in layouts that store every "
           "position. Raises StateError.")
      .def("state_dict", &Optimizer::state_dict,
           "Returns copies of all states, for `load_state_dict`.")
      .def("load_state_dict", &Optimizer::load_state_dict, py::arg("state"),
           "Restores what `state_dict` returned. Restore the masks first. Raises CheckpointError.")
      .def(
          "register_step_pre_hook",
          [](Optimizer& o, const py::function& hook) {
            return o.register_step_pre_hook(step_hook(hook));
          },
          py::arg("hook"),
          "Calls hook(optimizer) before each step changes the values. A hook of PyTorch's form, "
          "hook(optimizer, args, kwargs), works too.")
      .def(
          "register_step_post_hook",
          [](Optimizer& o, const py::function& hook) {
            return o.register_step_post_hook(step_hook(hook));
          },
          py::arg("hook"), "Calls the hook after each step, and after the masks were updated.")
      .def("__repr__", &describe_optimizer)
      .def("__reduce__", [](const Optimizer&) -> py::object {
        throw py::type_error("an optimizer cannot be pickled; pickle its state_dict()");
      });
  bind_kind<Sgd>(
      module, "SGD", "sgd",
      "Stochastic gradient descent. Options: lr (required: a number, a schedule or f(step)), "
      "momentum, dampening, weight_decay, nesterov, warmup, clip_norm, no_decay, groups.");
  bind_kind<Adam>(module, "Adam", "adam",
                  "Adam. Options: lr (default 0.001), betas, eps, weight_decay, warmup, clip_norm, "
                  "no_decay, groups, regrown, as in a configuration's section `optimizer`.");
  bind_kind<AdamW>(module, "AdamW", "adamw",
                   "Adam with decoupled weight decay (default 0.01). It has the options of Adam.");
  module.def(
      "optimizer",
      [](const py::dict& config, std::vector<ParameterPtr> parameters) {
        return make(to_config_with_callables(config), std::move(parameters));
      },
      py::arg("config"), py::arg("params"),
      "Makes the optimizer that a configuration's section `optimizer` describes, such as {'type': "
      "'adamw', 'lr': 1e-3}. Raises ConfigError.");
}

}  // namespace lacuna::python
