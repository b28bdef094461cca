// Datasets of arrays, and loaders.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/loader.h"
#include "own_data.hpp"

namespace lacuna::python {
namespace {

using DatasetPtr = std::shared_ptr<const Dataset>;

// Bytes stay bytes, as those of images; all other numbers become floats.
Examples examples_of(const py::object& inputs, const std::optional<py::object>& answers,
                     int64_t num_classes, std::vector<std::string> class_names) {
  const py::array x = as_array(inputs);
  if (x.ndim() == 0) throw py::value_error("ArrayDataset: dimension 0 of x is the examples");
  const Shape whole = to_shape(py::tuple(x.attr("shape")));
  Examples examples{
      .example_shape = whole.without_batch(), .inputs = {}, .class_names = std::move(class_names)};
  if (x.dtype().kind() == 'u' && x.dtype().itemsize() == 1) {
    const auto bytes = py::array_t<uint8_t, py::array::c_style | py::array::forcecast>::ensure(x);
    examples.inputs = std::vector<uint8_t>(bytes.data(), bytes.data() + bytes.size());
  } else {
    examples.inputs = to_tensor(x).to_vector();
  }
  if (!answers) return examples;
  const py::array y = as_array(*answers);
  const bool is_labels = std::string_view("iub").find(y.dtype().kind()) != std::string_view::npos;
  require_one_answer_each(y, whole[0], is_labels);
  if (is_labels) {
    const IndexTensor labels = to_index_tensor(y);
    examples.labels.assign(labels.values().begin(), labels.values().end());
    const auto most = std::ranges::max_element(examples.labels);
    if (num_classes == 0 && y.dtype().kind() == 'b') num_classes = 2;
    examples.num_classes =
        num_classes > 0 || most == examples.labels.end() ? num_classes : *most + 1;
  } else {
    const Tensor targets = to_tensor(y);
    examples.targets = targets.to_vector();
    examples.num_outputs =
        targets.shape().rank() == 1 ? 1 : targets.shape().without_batch().numel();
  }
  return examples;
}

py::tuple as_pair(const Batch& batch) {
  const py::object inputs = batch.inputs.defined()
                                ? py::object(to_array(batch.inputs))
                                : py::object(to_array(batch.named.at("input_ids")));
  py::object answers = py::none();
  if (batch.labels.defined()) answers = to_array(batch.labels);
  if (batch.targets.defined()) answers = to_array(batch.targets);
  return py::make_tuple(inputs, answers);
}

py::tuple gather(const Dataset& data, const std::vector<int64_t>& indices) {
  Batch batch;
  {
    const py::gil_scoped_release released;
    batch = data.gather(indices);
  }
  return as_pair(batch);
}

// The batches of one epoch, or what is left of it.
class EpochIterator {
 public:
  explicit EpochIterator(std::shared_ptr<Loader> loader)
      : loader_(std::move(loader)), epoch_(loader_->epoch()) {}

  py::tuple next() {
    if (loader_->epoch() != epoch_) throw py::stop_iteration();
    Batch batch;
    {
      const py::gil_scoped_release released;
      batch = loader_->next();
    }
    return as_pair(batch);
  }

 private:
  std::shared_ptr<Loader> loader_;
  int64_t epoch_;
};

// Joins the loader's thread, which may need the GIL to end.
void delete_without_gil(const Loader* loader) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) {
    delete loader;
    return;
  }
  const py::gil_scoped_release released;
  delete loader;
}

std::shared_ptr<Loader> make_loader(const py::object& dataset, int64_t batch_size, bool shuffle,
                                    bool drop_last, uint64_t seed, int prefetch) {
  const DatasetPtr data = dataset_of(dataset);
  const LoaderOptions options{.batch_size = batch_size,
                              .shuffle = shuffle ? Shuffle::EveryEpoch : Shuffle::None,
                              .last_batch = drop_last ? LastBatch::Drop : LastBatch::Keep,
                              .seed = seed,
                              .prefetch = prefetch};
  return {new Loader(data, options), delete_without_gil};
}

OwnDataset& own_dataset(Dataset& dataset) {
  auto* own = dynamic_cast<OwnDataset*>(&dataset);
  if (own == nullptr) throw py::attribute_error("this dataset defines its own classes");
  return *own;
}

py::dict load(const Config& config, uint64_t seed) {
  DataSplits splits;
  {
    const py::gil_scoped_release released;
    // As a new run: without these keys, a configuration is one of an earlier version.
    Config data = config.clone();
    write_new_run_keys(data);
    splits = load_data(data, seed);
  }
  const auto of = [](const DatasetPtr& data) {
    return data == nullptr ? py::object(py::none())
                           : py::cast(std::const_pointer_cast<Dataset>(data));
  };
  py::dict all;
  all["train"] = of(splits.train);
  all["validation"] = of(splits.validation);
  all["test"] = of(splits.test);
  return all;
}

}  // namespace

void require_one_answer_each(const py::array& answers, int64_t examples, bool are_labels) {
  const auto rank = answers.ndim();
  const bool fits = (rank == 1 || (rank == 2 && !are_labels)) && answers.shape(0) == examples;
  if (fits) return;
  throw DataError(fmt::format("{} answers of shape {} do not fit {} examples; expected {}",
                              are_labels ? "integer" : "float",
                              to_shape(py::tuple(answers.attr("shape"))).to_string(), examples,
                              are_labels
                                  ? fmt::format("[{}], a class for each example", examples)
                                  : fmt::format("[{}] or [{}, outputs]", examples, examples)));
}

void bind_data(py::module_& module) {
  py::class_<Dataset, OwnDataset, std::shared_ptr<Dataset>>(
      module, "Dataset",
      "A set of examples. `data[i]` and `data[[i, j]]` return pairs of arrays: inputs and answers. "
      "A subclass defines `__len__(self)` and `__getitem__(self, i)`, which returns (x, y): x is "
      "an array of numbers (a byte b becomes b / 255), y an integer (a class), numbers (targets) "
      "or None. All examples have the shape of the first one. If the subclass sets "
      "neither `num_classes` nor `class_names`, the largest class is found by a pass over all "
      "examples.")
      .def(py::init_alias<>())
      .def("__len__", &Dataset::size)
      .def_property_readonly(
          "example_shape", [](const Dataset& d) { return d.example_shape(); },
          "The shape of one input.")
      .def_property(
          "num_classes", &Dataset::num_classes,
          [](Dataset& d, int64_t count) { own_dataset(d).set_num_classes(count); },
          "Number of classes; 0 for regression. A subclass may set it.")
      .def_property_readonly("num_outputs", &Dataset::num_outputs,
                             "Number of targets of an example; 0 for classes.")
      .def_property(
          "class_names", &Dataset::class_names,
          [](Dataset& d, std::vector<std::string> names) {
            own_dataset(d).set_class_names(std::move(names));
          },
          "Names of the classes; an empty list if they have none. A subclass may set it.")
      .def(
          "__getitem__",
          [](const Dataset& d, const py::array_t<bool>& mask) {
            if (mask.ndim() != 1 || mask.size() != d.size()) {
              throw py::index_error("a mask of examples needs one value for each of them");
            }
            std::vector<int64_t> indices;
            for (int64_t i = 0; i < d.size(); ++i) {
              if (mask.at(i)) indices.push_back(i);
            }
            return gather(d, indices);
          },
          py::arg("mask").noconvert())
      .def(
          "__getitem__",
          [](const Dataset& d, std::vector<int64_t> indices) {
            for (int64_t& index : indices) index += index < 0 ? d.size() : 0;
            return gather(d, indices);
          },
          py::arg("indices"))
      .def("__getitem__", [](const Dataset& d, int64_t index) {
        if (index < -d.size() || index >= d.size()) throw py::index_error("index out of range");
        const py::tuple pair = gather(d, {index < 0 ? index + d.size() : index});
        const py::object answer = pair[1];
        return py::make_tuple(pair[0][py::int_(0)],
                              answer.is_none() ? answer : py::object(answer[py::int_(0)]));
      });
  py::class_<ArrayDataset, Dataset, std::shared_ptr<ArrayDataset>>(
      module, "ArrayDataset", "A dataset of arrays. The arrays are copied once.")
      .def(py::init([](const py::object& x, const std::optional<py::object>& y, int64_t num_classes,
                       std::vector<std::string> class_names) {
             return std::make_shared<ArrayDataset>(
                 examples_of(x, y, num_classes, std::move(class_names)));
           }),
           py::arg("x"), py::arg("y") = py::none(), py::arg("num_classes") = 0,
           py::arg("class_names") = std::vector<std::string>(),
           "x: bytes (a byte b becomes b / 255) or numbers, [n, ...]. y: integers [n] (classes; "
           "num_classes is by default one more than the largest of them), booleans [n] (two "
           "classes), or floats [n] or [n, outputs]. Raises DataError.");
  py::class_<EpochIterator>(module, "_EpochIterator")
      .def("__iter__", [](EpochIterator& i) -> EpochIterator& { return i; })
      .def("__next__", &EpochIterator::next);
  py::class_<Loader, std::shared_ptr<Loader>>(
      module, "Loader",
      "Batches of a dataset, as pairs of arrays. A loop over the loader ends with its epoch; the "
      "next loop yields the next epoch, or the rest of this one after a `break`.")
      .def(py::init(&make_loader), py::arg("dataset"), py::arg("batch_size") = 128,
           py::arg("shuffle") = true, py::arg("drop_last") = false, py::arg("seed") = 0,
           py::arg("prefetch") = 2)
      .def("__iter__", [](const std::shared_ptr<Loader>& l) { return EpochIterator(l); })
      .def("__len__", &Loader::batches_per_epoch)
      .def_property_readonly("epoch", &Loader::epoch)
      .def_property_readonly("batch_in_epoch", &Loader::batch_in_epoch)
      .def("state_dict", &Loader::state,
           "The position in the sequence of batches, for `load_state_dict`.")
      .def("load_state_dict", &Loader::load_state, py::arg("state"), ReleaseGil(),
           "Returns to a position that `state_dict` saved. Raises CheckpointError.");
  bind_own_data(module);
  module.def(
      "load_data", &load, py::arg("config"), py::arg("seed") = 0,
      "Loads the data of a configuration's section `data`, as a new run does: missing keys have "
      "the documented defaults, also in the section of a run of an earlier version. Returns a "
      "dict with the splits train, validation and test; a missing split is None.");
}

}  // namespace lacuna::python
