// Models: built from descriptions, run, looked into, evaluated.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/loss_function.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/sparsity/algorithm.h"
#include "own_data.hpp"

namespace lacuna::python {
namespace {

using ModelPtr = std::shared_ptr<Sequential>;

ModelPtr make_model(const Config& description, const Shape& input_shape, uint64_t seed) {
  const ModelLayers layers = model_layers(description);
  ModelPtr model = build_model(layers, input_shape);
  description.require_all_read();
  for (const Config& copy : layers.copies) copy.require_all_read();
  model->initialize(seed);
  return model;
}

py::dict describe(const Evaluation& result) {
  py::dict entries;
  const auto add = [&](const char* name, double value) {
    if (!std::isnan(value)) entries[name] = value;
  };
  add("loss", result.loss);
  add("accuracy", result.accuracy);
  add("top5_accuracy", result.top5_accuracy);
  add("perplexity", result.perplexity);
  for (const auto& [name, value] : other_results(result)) entries[py::str(name)] = value;
  add("bits_per_character", result.bits_per_character);
  entries["examples"] = result.examples;
  return entries;
}

// Outputs and answers of all batches, for metrics of the user's own.
struct Seen {
  std::vector<Tensor> outputs, targets;
  std::vector<IndexTensor> labels;
};

py::object joined(const auto& arrays) {
  py::list all;
  for (const auto& array : arrays) {
    if (array.defined()) all.append(to_array(array));
  }
  if (all.empty()) return py::none();
  return py::module_::import("numpy").attr("concatenate")(all);
}

py::dict evaluate_on(Module& module, const py::object& dataset, const Config& loss,
                     int64_t batch_size, const py::dict& metrics) {
  take_over_writes();
  const std::shared_ptr<const Dataset> data = dataset_of(dataset);
  Seen seen;
  Evaluation result;
  {
    const py::gil_scoped_release released;
    Config section = Config::map();
    if (!loss.is_null()) section.set("loss", loss);
    const LossFunction function = LossFunction::from_config(section, *data);
    BatchWatcher watcher = nullptr;
    if (metrics.size() > 0) {
      watcher = [&](const Tensor& output, const Batch& batch) {
        seen.outputs.push_back(output.to(Order::RowMajor));
        seen.targets.push_back(batch.targets);
        seen.labels.push_back(batch.labels);
      };
    }
    result = evaluate(module, function, *data, batch_size, watcher);
  }
  py::dict entries = describe(result);
  if (metrics.size() == 0) return entries;
  const py::object outputs = joined(seen.outputs);
  const py::object labels = joined(seen.labels);
  const py::object answers = labels.is_none() ? joined(seen.targets) : labels;
  for (const auto& [name, metric] : metrics) entries[name] = metric(outputs, answers);
  return entries;
}

bool requires_dense(const Module& module) {
  const auto parameters = module.parameters();
  return !parameters.empty() &&
         std::ranges::all_of(parameters, [](const auto& p) { return p->requires_dense; });
}

py::list layer_rows(Module& module, const Shape& input) {
  py::list rows;
  for (const ModuleRow& row : module_rows(module, input)) {
    py::dict entry;
    entry["path"] = row.module->path();
    entry["type"] = std::string(row.module->type());
    entry["input"] = row.input ? py::object(to_tuple(*row.input)) : py::object(py::none());
    rows.append(entry);
  }
  return rows;
}

void bind_module(py::module_& module) {
  py::class_<Module, std::shared_ptr<Module>>(
      module, "Module", "A layer or a model: a function with named parameters and child modules.")
      .def("__call__", &call_module, py::arg("input"),
           "Computes the output, a Variable. Dimension 0 of the input is the batch. Keywords are "
           "integer arrays that accompany tokens, such as attention_mask. Raises ShapeError, and "
           "TypeError for a keyword that no layer reads.")
      .def(
          "predict", &predict_by_module, py::arg("input"), py::kw_only(),
          py::arg("batch_size") = 1024,
          "Computes the output as a NumPy array, in evaluation mode and without recording. A "
          "C-ordered float32 array of up to batch_size examples is not copied, unless it ends less "
          "than 16 bytes before the end of a page of memory. Keywords are as for a call. Raises "
          "ShapeError if dimension 0 of a batch's output is not the batch.")
      .def("evaluate", &evaluate_on, py::arg("data"), py::kw_only(), py::arg("loss") = py::none(),
           py::arg("batch_size") = 1000, py::arg("metrics") = py::dict(),
           "Returns a dict of loss, accuracy and other results. loss: as in a configuration. "
           "metrics: functions f(outputs, answers), called with the arrays of all examples.")
      .def_property_readonly("type", [](const Module& m) { return std::string(m.type()); })
      .def_property_readonly("path", &Module::path, "Full dotted path in the model.")
      .def("parameters", &Module::parameters, "Returns the parameters of all layers, in order.")
      .def(
          "named_parameters",
          [](const Module& m) {
            std::vector<std::pair<std::string, ParameterPtr>> named;
            for (const ParameterPtr& p : m.parameters()) named.emplace_back(p->name(), p);
            return named;
          },
          "Returns pairs of full name and parameter.")
      .def(
          "named_modules",
          [](const std::shared_ptr<Module>& m) {
            std::vector<std::pair<std::string, std::shared_ptr<Module>>> named;
            for (Module* one : m->modules()) {
              named.emplace_back(one->path(), std::shared_ptr<Module>(m, one));
            }
            return named;
          },
          "Returns pairs of path and module, this module included.")
      .def(
          "children",
          [](const std::shared_ptr<Module>& m) {
            std::vector<std::shared_ptr<Module>> all;
            for (const auto& [name, child] : m->children()) all.emplace_back(m, child);
            return all;
          },
          "Returns the direct child modules.")
      .def(
          "__getitem__", [](const Module& m, std::string_view name) { return m.parameter(name); },
          py::arg("name"), "The parameter with this full name. Raises StateError.")
      .def("state_dict", &state_dict, py::kw_only(), py::arg("masks") = true,
           "Returns dense copies of parameters and buffers by name, and NAME_mask of sparse ones.")
      .def("load_state_dict", &load_state_dict, py::arg("state"), py::kw_only(),
           py::arg("strict") = true,
           "Loads arrays of NumPy or PyTorch by the names of parameters, masks (NAME_mask) and "
           "buffers. A parameter whose mask is missing keeps its present one. Raises "
           "CheckpointError, which lists all differences, before anything is changed.")
      .def(
          "state", [](const Module& m) { return take_over_writes(), m.state_dict(); },
          "Returns everything that a checkpoint stores of the model, for `load_state`.")
      .def(
          "load_state", [](Module& m, const StateDict& state) { m.load_state_dict(state); },
          py::arg("state"), "Restores what `state` returned, and layouts. Raises CheckpointError.")
      .def(
          "save",
          [](Module& m, const std::string& path) {
            take_over_writes();
            save_model(path, m);
          },
          py::arg("path"), "Writes a checkpoint that contains only the model.")
      .def(
          "load_weights", [](Module& m, const std::string& path) { load_weights(path, m); },
          py::arg("path"), ReleaseGil(),
          "Loads the weights of a checkpoint, a run folder, a Hugging Face folder, or a file of "
          "another tool (.safetensors, .safetensors.index.json, .npz, .npy, or .onnx that lacuna "
          "wrote). Raises CheckpointError.")
      .def("initialize", &Module::initialize, py::arg("seed"), "Draws new initial values.")
      .def(
          "apply",
          [](const py::object& self, const py::object& algorithm) {
            if (!py::isinstance<SparsityAlgorithm>(algorithm))
              return apply_function(self, algorithm);
            auto& model = self.cast<Module&>();
            auto& sparsity = algorithm.cast<SparsityAlgorithm&>();
            take_over_writes();
            note_parameters(model.parameters());
            {
              const py::gil_scoped_release released;
              model.apply(sparsity);
            }
            algorithm.attr("_model") = py::weakref(self);
            py::detail::keep_alive_impl(self, algorithm);
            return self;
          },
          py::arg("algorithm"),
          "Applies a sparsity algorithm, or calls f(module) for all child modules and this one. "
          "Returns the module. Raises ConfigError, ShapeError, StateError.")
      .def(
          "train",
          [](const py::object& self, bool mode) {
            auto& m = self.cast<Module&>();
            mode ? m.train() : m.eval();
            return self;
          },
          py::arg("mode") = true, "Switches to training or evaluation mode; returns the module.")
      .def(
          "eval",
          [](const py::object& self) {
            self.cast<Module&>().eval();
            return self;
          },
          "Switches to evaluation mode. Returns the module.")
      .def_property_readonly("training", &Module::training)
      .def_property("requires_dense", &requires_dense, &Module::set_requires_dense,
                    "If true, all parameters of the module stay dense, whatever filters match.")
      .def("__getattr__", &part_of, py::arg("name"),
           "Modules and parameters are attributes: model.fc1.weight.")
      .def("freeze", &Module::freeze, py::arg("globs"),
           "Stops training the parameters whose full names match the globs. Raises ConfigError.")
      .def("set_trainable", &Module::set_trainable, py::arg("trainable"),
           "Trains all parameters, or none.")
      .def("output_shape", &Module::output_shape, py::arg("input_shape"),
           "Returns the shape of one example's output, without the batch.")
      .def("rows", &layer_rows, py::arg("input_shape"),
           "Lists all modules in order: path, type, and input shape of one example.")
      .def("__reduce__", [](const Module&) -> py::object {
        throw py::type_error("a model cannot be pickled; pickle m.state() or m.state_dict()");
      });
}

}  // namespace

void bind_modules(py::module_& module) {
  bind_module(module);
  bind_own_modules(module);
  py::class_<Sequential, Module, ModelPtr>(module, "Sequential",
                                           "A model: layers one after the other.")
      .def(py::init(&make_model), py::arg("layers"), py::arg("input_shape"), py::arg("seed") = 0);
}

}  // namespace lacuna::python
