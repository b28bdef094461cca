// Trained runs opened to be used: predictions, evaluations and the model; and pictures of masks.
#include "lacuna/framework/interop/load_run.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/data/added_channel.hpp"
#include "lacuna/framework/records/mask_record.hpp"
#include "own_data.hpp"

namespace lacuna::python {
namespace {

using Bytes = py::array_t<uint8_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

// Examples as an array that stays where it is where it may: bytes, or float32 in C order. A single
// example counts as a batch of one.
struct ExampleArray {
  ExampleArray(const py::object& given, const Shape& example) {
    py::array array = py::module_::import("numpy").attr("asarray")(given);
    array = array.dtype().is(py::dtype::of<uint8_t>()) || py::isinstance<Bytes>(array)
                ? py::array(Bytes::ensure(array))
                : py::array(Floats::ensure(array));
    if (!array) throw py::type_error("the inputs must be an array of numbers");
    std::vector<int64_t> sizes(array.shape(), array.shape() + array.ndim());
    is_single = with_channel_of(example, Shape(std::span<const int64_t>(sizes))) == example;
    if (is_single) sizes.insert(sizes.begin(), 1);
    view.shape = Shape(std::span<const int64_t>(sizes));
    if (py::isinstance<Bytes>(array)) {
      view.values = static_cast<const uint8_t*>(array.data());
    } else {
      view.values = static_cast<const float*>(array.data());
    }
    owner = std::move(array);
  }

  py::array owner;
  ExampleView view;
  bool is_single = false;
};

py::object predict_by_run(const LoadedRun& run, const py::object& inputs) {
  take_over_writes();
  const ExampleArray examples(inputs, run.inputs.example_shape);
  Tensor outputs;
  {
    const py::gil_scoped_release released;
    outputs = run.predict(examples.view);
  }
  const py::array array = to_array(outputs);
  return examples.is_single ? py::object(array[py::int_(0)]) : py::object(array);
}

py::dict evaluate(const LoadedRun& run, const py::object& inputs, const py::object& answers) {
  take_over_writes();
  const ExampleArray given(inputs, run.inputs.example_shape);
  Examples examples{.example_shape = run.inputs.example_shape, .inputs = {}};
  const auto count = static_cast<size_t>(given.view.shape.numel());
  std::visit(
      [&](const auto* values) {
        using Value = std::remove_cvref_t<decltype(*values)>;
        examples.inputs = std::vector<Value>(values, values + count);
      },
      given.view.values);
  py::array y = as_array(answers);
  if (given.is_single && y.ndim() == 0) y = y.attr("reshape")(1);
  require_one_answer_each(y, given.view.shape[0], run.has_classes());
  if (run.has_classes()) {
    const IndexTensor labels = to_index_tensor(y);
    examples.labels.assign(labels.values().begin(), labels.values().end());
  } else {
    examples.targets = to_tensor(y).to_vector();
  }
  Evaluation result;
  {
    const py::gil_scoped_release released;
    result = run.evaluate(std::move(examples));
  }
  py::dict all;
  all["loss"] = result.loss;
  if (!std::isnan(result.accuracy)) all["accuracy"] = result.accuracy;
  if (!std::isnan(result.top5_accuracy)) all["top5_accuracy"] = result.top5_accuracy;
  for (const auto& [name, value] : other_results(result)) all[py::str(name)] = value;
  all["examples"] = result.examples;
  return all;
}

py::tuple mask_png(const py::array_t<bool, py::array::c_style | py::array::forcecast>& mask,
                   int64_t most) {
  if (most < 1 || most > 10000) {
    throw py::value_error("MaskPicture: most_pixels must be from 1 to 10000");
  }
  const std::vector<int64_t> sizes(mask.shape(), mask.shape() + mask.ndim());
  const Shape shape{std::span<const int64_t>(sizes)};
  const bool* values = mask.data();
  const py::gil_scoped_release released;
  const auto visit = [&](const std::function<void(int64_t)>& position) {
    for (int64_t i = 0; i < shape.numel(); ++i) {
      if (values[i]) position(i);
    }
  };
  const MaskPicture picture =
      picture_of(record_mask("mask", shape, visit, MaskDetail::Positions), most);
  const py::gil_scoped_acquire gil;
  return py::make_tuple(py::bytes(picture.png), picture.width, picture.height);
}

}  // namespace

void bind_loaded_run(py::module_& module) {
  py::class_<LoadedRun, std::shared_ptr<LoadedRun>>(
      module, "LoadedRun",
      "A trained run, ready for use: its model in evaluation mode, and the preprocessing of its "
      "data. `load` returns one.")
      .def("predict", &predict_by_run, py::arg("inputs"),
           "Returns the model's outputs for inputs of the same form as the training data. A uint8 "
           "array holds images with values from 0 to 255. Any other array is converted to float32; "
           "images then have values from 0 to 1. Both are normalized like the training data. A "
           "C-ordered array of uint8 or float32 is not copied.\n\nShapes: [n, *example_shape] -> "
           "[n, *outputs]; [*example_shape] -> [*outputs]. If example_shape is [1, rows, columns], "
           "images may lack the channel; an array [1, rows, columns] is one example. Outputs are "
           "logits; for regression, they are targets in the targets' unit. Raises DataError for "
           "another shape, and for a model of tokens.")
      .def("__call__", &predict_by_run, py::arg("inputs"))
      .def("evaluate", &evaluate, py::arg("inputs"), py::arg("answers"),
           "Returns a dict of the loss, by the run's own loss function, and the accuracy or the "
           "errors of the regression.\n\nShapes: inputs [n, *example_shape] as for `predict`; "
           "answers [n] integers for classes, otherwise [n] or [n, outputs]. Raises DataError.")
      .def_property_readonly(
          "model",
          [](const std::shared_ptr<LoadedRun>& run) {
            return std::shared_ptr<Sequential>(run, run->model.get());
          },
          "The model, in evaluation mode. Each parameter has its mask and layout.")
      .def(
          "parameters", [](const LoadedRun& run) { return run.model->parameters(); },
          "All parameters of the model.")
      .def(
          "__getitem__",
          [](const LoadedRun& run, std::string_view name) { return run.model->parameter(name); },
          py::arg("name"), "The parameter with this full name. Raises StateError.")
      .def("__repr__",
           [](const LoadedRun& run) {
             return "<lacuna.LoadedRun of step " + std::to_string(run.step) + ">";
           })
      .def("__reduce__",
           [](const LoadedRun&) -> py::object {
             throw py::type_error("a loaded run cannot be pickled; pickle its folder's name");
           })
      .def_property_readonly(
          "checkpoint", [](const LoadedRun& run) { return run.checkpoint; },
          "The checkpoint file that was loaded.")
      .def_property_readonly(
          "step", [](const LoadedRun& run) { return run.step; },
          "Number of optimizer steps done at that checkpoint.")
      .def_property_readonly(
          "config", [](const LoadedRun& run) { return run.config; },
          "The run's resolved configuration, as a dict.")
      .def_property_readonly(
          "is_averaged", [](const LoadedRun& run) { return run.is_averaged; },
          "Whether the weights are the average that `train.ema` computes.")
      .def_property_readonly(
          "example_shape", [](const LoadedRun& run) { return run.inputs.example_shape; },
          "The shape of one input.")
      .def_property_readonly(
          "class_names", [](const LoadedRun& run) { return run.inputs.class_names; },
          "Names of the classes, in the order of the outputs; empty if classes have no names.");
  module.def(
      "load",
      [](const py::object& run, bool last) {
        const auto path = py::module_::import("os").attr("fspath")(run).cast<std::string>();
        const py::gil_scoped_release released;
        return std::make_shared<LoadedRun>(
            load_run_in_int8(path, last ? KeptCheckpoint::Last : KeptCheckpoint::Best));
      },
      py::arg("run"), py::kw_only(), py::arg("last") = false,
      "Opens a run (a Run, its folder, or a checkpoint file) for predictions. Loads the best "
      "checkpoint if one is kept and `last` is false, otherwise the newest undamaged one. The "
      "model of a quantized run computes in int8. Raises CheckpointError.");
  module.def("_mask_png", &mask_png, py::arg("mask"), py::arg("most"));
}

}  // namespace lacuna::python
