// Modules whose forward is written in Python, and how they become parts of models.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/whole_forward.hpp"
#include "lacuna/framework/train/model_builder.hpp"

namespace lacuna::python {
namespace {

// A module of a class in Python. Its Python object holds it, and so does the module that it is a
// part of: whoever lets it go last deletes it, which its own operator delete sees to.
class OwnModule final : public Module {
 public:
  explicit OwnModule(std::string type) : type_(std::move(type)) {}
  ~OwnModule() override = default;
  void operator delete(OwnModule* module, std::destroying_delete_t) {
    if (module->owners_.fetch_sub(1) > 1) return module->leave();
    module->~OwnModule();
    ::operator delete(module);
  }

  std::string_view type() const override { return type_; }
  Shape output_shape(const Shape& input) const override;

  using Module::register_buffer;
  void add_parameter(const std::string& name, const ParameterPtr& parameter);
  Module& add_part(const std::string& name, std::unique_ptr<Module> part);
  /// This module for another one to own: `above`, if that is of this class. `kept` lives as long as
  /// the other one has it.
  std::unique_ptr<Module> as_part(OwnModule* above, std::shared_ptr<const void> kept);

 protected:
  Variable forward(const Variable& input) override { return forward_all(std::span(&input, 1)); }
  Variable forward_all(std::span<const Variable> inputs) override;
  void reset_random(uint64_t seed) override;

 private:
  py::object self() const;
  void leave();

  std::string type_;
  std::atomic<int> owners_ = 1;
  OwnModule* above_ = nullptr;
  bool is_part_ = false;
  bool is_left_ = false;  // by the module that it was a part of, which is gone
  std::shared_ptr<const void> kept_;
  std::vector<std::pair<ParameterPtr, Tensor>> given_;  // values that parameters begin with
};

using OwnModulePtr = std::shared_ptr<OwnModule>;

py::object OwnModule::self() const {
  const py::handle found =
      py::detail::get_object_handle(this, py::detail::get_type_info(typeid(OwnModule), true));
  if (found) return py::reinterpret_borrow<py::object>(found);
  throw StateError("the Python object of module '" + path() + "' (" + type_ + ") no longer exists");
}

std::unique_ptr<Module> OwnModule::as_part(OwnModule* above, std::shared_ptr<const void> kept) {
  for (const OwnModule* at = above; at != nullptr; at = at->above_) {
    if (at == this) throw StateError("a module cannot be a part of itself");
  }
  if (is_part_) {
    throw StateError("the module '" + path() + "' (" + type_ +
                     ") is already a part of a model, and can only belong to one");
  }
  is_part_ = true;
  is_left_ = false;
  above_ = above;
  ++owners_;
  kept_ = std::move(kept);
  return std::unique_ptr<Module>(this);
}

// The module around it is gone; its Python object has it still.
void OwnModule::leave() {
  is_part_ = false;
  is_left_ = true;
  above_ = nullptr;
  const std::shared_ptr<const void> kept = std::move(kept_);  // may be all that holds the object
}

Module& OwnModule::add_part(const std::string& name, std::unique_ptr<Module> part) {
  for (const OwnModule* at = this; at != nullptr; at = at->above_) {
    if (!at->is_left_) continue;
    throw StateError("the model that module '" + path() + "' (" + type_ +
                     ") was a part of is gone; make the module again to add parts to it");
  }
  return register_module(name, std::move(part));
}

void OwnModule::add_parameter(const std::string& name, const ParameterPtr& parameter) {
  if (name.empty() || name.find_first_of("./") != std::string::npos) {
    throw StateError("a parameter needs a name without '.' and '/', found '" + name + "'");
  }
  if (!parameter->name().empty()) {
    throw StateError("the parameter '" + parameter->name() + "' already belongs to a module");
  }
  given_.emplace_back(parameter, parameter->to_dense());
  register_parameter(name, parameter);
}

void OwnModule::reset_random(uint64_t) {
  for (const auto& [parameter, values] : given_) parameter->assign(values);
}

Variable OwnModule::forward_all(std::span<const Variable> inputs) {
  const py::gil_scoped_acquire gil;
  const WholeForward whole;
  const CodeScope code(CodeOf::Module);
  py::tuple arguments(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) arguments[i] = py::cast(inputs[i]);
  const py::object output = self().attr("forward")(*arguments);
  if (py::isinstance<Variable>(output)) return output.cast<Variable>();
  throw py::type_error("forward of module '" + path() + "' (" + type_ +
                       ") must return a Variable, found " +
                       std::string(py::repr(py::type::of(output))));
}

// An example of zeros: token ids where an embedding needs them, which other operations read as
// floats.
Variable zeros_for(Module& module, const Shape& shape) {
  const bool has_embedding = std::ranges::any_of(module.modules(), [](Module* one) {
    const auto* user = dynamic_cast<const NamedInputUser*>(one);
    return user != nullptr && user->requested_input().name == kInputIds;
  });
  if (!has_embedding) return Tensor::zeros(shape);
  return token_ids(IndexTensor(shape, std::vector<int64_t>(static_cast<size_t>(shape.numel()))));
}

// As a method of the class says, or by an example of zeros.
Shape OwnModule::output_shape(const Shape& input) const {
  const py::gil_scoped_acquire gil;
  const py::object object = self();
  const py::object base = py::type::of<Module>().attr("output_shape");
  const py::object method = py::type::of(object).attr("output_shape");
  if (!method.is(base)) {
    return to_shape(object.attr("output_shape")(to_tuple(input)));
  }
  std::vector<int64_t> sizes{1};
  sizes.insert(sizes.end(), input.sizes().begin(), input.sizes().end());
  auto& module = const_cast<OwnModule&>(*this);
  const EvaluationMode mode(module);
  Shape output;
  try {
    output = module(zeros_for(module, Shape(std::span<const int64_t>(sizes)))).shape();
  } catch (py::error_already_set& error) {  // which has come through forward
    if (!error.matches(py::module_::import("lacuna._lacuna").attr("ShapeError"))) throw;
    throw ShapeError(py::str(error.value()).cast<std::string>());
  }
  if (output.rank() == 0 || output[0] != 1) {
    throw ShapeError(fmt::format(
        "forward of '{}' ({}) gives shape {} for one example of shape {}: dimension 0 must stay "
        "the batch",
        path(), type_, output.to_string(), input.to_string()));
  }
  return output.without_batch();
}

std::shared_ptr<Module> alias_of(const OwnModulePtr& owner, Module& part) {
  return {std::static_pointer_cast<Module>(owner), &part};
}

// A layer by its entry in a configuration, made for examples of that shape.
std::unique_ptr<Module> make_layer(const Config& entry, const Shape& example) {
  const auto type = entry.required<std::string>("type");
  if (!layer_registry().contains(type)) {  // a group of layers, or nothing that is known
    const Config list = Config::list({entry});
    const ModelLayers layers = model_layers(list);
    std::unique_ptr<Module> made = build_model(layers, example);
    list.require_all_read();
    return made;
  }
  std::unique_ptr<Module> made = layer_registry().find(type, entry).make(entry, example);
  if (!entry.get<bool>("trainable", true)) made->set_trainable(false);
  entry.get("name").mark_read();
  entry.require_all_read();
  return made;
}

std::shared_ptr<Module> add_layer(const OwnModulePtr& self, const std::string& name,
                                  const Config& entry, const Shape& example) {
  return alias_of(self, self->add_part(name, make_layer(entry, example)));
}

// The parent's Python object has the child's, so that the child need not be kept.
void add_module(OwnModule& self, const std::string& name, OwnModule& child) {
  if (&self == &child) throw StateError("a module cannot be a part of itself");
  self.add_part(name, child.as_part(&self, nullptr));
}

py::object buffer_of(OwnModule& self, const std::string& name) {
  const std::string full = self.path().empty() ? name : self.path() + "." + name;
  for (const auto& [path, buffer] : self.buffers()) {
    if (path == full) return to_array(*buffer);
  }
  return py::none();
}

void set_buffer(OwnModule& self, const std::string& name, const Tensor& values) {
  const std::string full = self.path().empty() ? name : self.path() + "." + name;
  for (const auto& [path, buffer] : self.buffers()) {
    if (path != full) continue;
    if (buffer->shape() != values.shape()) {
      throw ShapeError(fmt::format("the buffer '{}' has shape {}, found {}", full,
                                   buffer->shape().to_string(), values.shape().to_string()));
    }
    *buffer = values.clone();
    return;
  }
  throw StateError("the module has no buffer '" + name + "'");
}

py::object call_own(OwnModule& module, const py::args& inputs, const py::kwargs& named) {
  take_over_writes();
  std::vector<Variable> variables;
  for (const py::handle input : inputs) variables.push_back(to_variable(input));
  if (named.size() > 0) {  // they are forward's own
    py::tuple arguments(variables.size());
    for (size_t i = 0; i < variables.size(); ++i) arguments[i] = py::cast(variables[i]);
    const CodeScope code(CodeOf::Module);
    return py::cast(&module, py::return_value_policy::reference)
        .attr("forward")(*arguments, **named);
  }
  const py::gil_scoped_release released;
  Variable output = module(variables);
  const py::gil_scoped_acquire gil;
  return py::cast(std::move(output));
}

// Modules that descriptions of models have by numbers, until a model takes them.
std::map<int64_t, py::object>& lent() {
  static auto* all = new std::map<int64_t, py::object>;
  return *all;
}

// An object's module for C++ to own, which keeps the object.
std::unique_ptr<Module> part_of(const py::object& object) {
  if (!py::isinstance<OwnModule>(object)) {
    throw py::type_error("expected a lacuna.nn.Module, found " +
                         std::string(py::repr(py::type::of(object))));
  }
  return object.cast<OwnModule&>().as_part(nullptr, keep(object));
}

std::unique_ptr<Module> take_lent(const Config& options, const Shape&) {
  const py::gil_scoped_acquire gil;
  const auto found = lent().find(options.required<int64_t>("number"));
  if (found == lent().end()) {
    options.at("number").error(
        "no such module in this process; register its class, and name it instead");
  }
  const py::object module = found->second;
  lent().erase(found);
  return part_of(module);
}

std::unique_ptr<Module> make_registered(const std::shared_ptr<const void>& factory,
                                        const Config& options, const Shape& input) {
  Config keys = options.clone();
  for (const char* name : {"type", "name", "trainable"}) keys.erase(name);
  options.mark_read();
  const py::gil_scoped_acquire gil;
  const auto make =
      py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(factory.get())));
  return calling_for(options, [&] { return part_of(make(from_config(keys), to_tuple(input))); });
}

}  // namespace

void bind_own_modules(py::module_& module) {
  py::class_<OwnModule, Module, OwnModulePtr>(
      module, "OwnModule", py::dynamic_attr(),
      "The base of lacuna.nn.Module. It stores the parts that Python registers.")
      .def(py::init<std::string>(), py::arg("type"))
      .def("__call__", &call_own,
           "Calls forward(*inputs, **kwargs), with arrays converted to Variables.")
      .def("_add_layer", &add_layer, py::arg("name"), py::arg("entry"), py::arg("example"))
      .def("_add_module", &add_module, py::arg("name"), py::arg("child"))
      .def("_add_parameter", &OwnModule::add_parameter, py::arg("name"), py::arg("parameter"))
      .def(
          "_add_buffer",
          [](OwnModule& m, const std::string& name, const Tensor& initial) {
            m.register_buffer(name, initial);
          },
          py::arg("name"), py::arg("initial"))
      .def("_buffer", &buffer_of, py::arg("name"))
      .def("_set_buffer", &set_buffer, py::arg("name"), py::arg("values"));
  layer_registry().add("python_module", "a module of a Python program", {.make = take_lent});
  module.def(
      "_lend_module",
      [](const py::object& object) {
        static int64_t next = 0;
        lent()[next] = object;
        return next++;
      },
      py::arg("module"));
  module.def(
      "_register_layer",
      [](const std::string& name, const std::string& help, const py::object& factory) {
        layer_registry().add(
            name, help, {.make = [kept = keep(factory)](const Config& options, const Shape& input) {
              return make_registered(kept, options, input);
            }});
      },
      py::arg("name"), py::arg("help"), py::arg("factory"));
}

}  // namespace lacuna::python
