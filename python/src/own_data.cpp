// Datasets that are classes in Python, data that a call is given, and how a configuration names
// them.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "binding.hpp"
#include "handles.hpp"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/load_data.h"
#include "own_data.hpp"

namespace lacuna::python {

py::object OwnDataset::self() const {
  const py::handle found = py::detail::get_object_handle(
      static_cast<const Dataset*>(this), py::detail::get_type_info(typeid(Dataset), true));
  if (!found) throw StateError("a dataset's Python object no longer exists");
  return py::reinterpret_borrow<py::object>(found);
}

std::string OwnDataset::class_name() const {
  return py::str(py::type::of(self()).attr("__name__")).cast<std::string>();
}

// What a subclass has under a name that the base has too; nothing where it is the base's.
py::object OwnDataset::own(const char* name) const {
  const py::object type = py::type::of(self());
  const bool is_base = type.attr(name).is(py::type::of<Dataset>().attr(name));
  return is_base ? py::object(py::none()) : py::object(self().attr(name));
}

int64_t OwnDataset::size() const {
  if (size_ >= 0) return size_;
  const py::gil_scoped_acquire gil;
  if (own("__len__").is_none()) {
    throw py::type_error("the class '" + class_name() + "' defines no __len__()");
  }
  size_ = static_cast<int64_t>(py::len(self()));
  return size_;
}

OwnDataset::Example OwnDataset::example(int64_t index) const {
  const py::object method = own("__getitem__");
  if (method.is_none()) {
    throw py::type_error("the class '" + class_name() + "' defines no __getitem__()");
  }
  const auto where = [&] { return fmt::format("example {} of '{}'", index, class_name()); };
  const py::object given = method(index);
  const bool is_pair =
      (py::isinstance<py::tuple>(given) || py::isinstance<py::list>(given)) && py::len(given) == 2;
  if (!is_pair) {
    throw py::type_error(where() + ": __getitem__() must return a pair (x, y), found " +
                         std::string(py::repr(py::type::of(given))));
  }
  Example example{.x = as_array(given[py::int_(0)]), .y = as_array(given[py::int_(1)])};
  const char kind = example.x.dtype().kind();
  if (std::string_view("fiub").find(kind) == std::string_view::npos) {
    throw py::type_error(where() + ": x must be an array of numbers, found one of " +
                         std::string(py::str(py::handle(example.x.dtype()))));
  }
  example.shape = to_shape(py::tuple(example.x.attr("shape")));
  const py::object answer = given[py::int_(1)];
  const char of_answer = answer.is_none() ? 'O' : example.y.dtype().kind();
  const bool is_integer = std::string_view("iub").find(of_answer) != std::string_view::npos;
  if (answer.is_none()) {
    example.answer = Answer::None;
  } else if (is_integer && example.y.ndim() == 0) {
    example.answer = Answer::Label;
    example.label = example.y.attr("item")().cast<int64_t>();
  } else if (is_integer || of_answer == 'f') {
    example.answer = Answer::Numbers;
    example.targets = to_tensor(example.y);
  } else {
    throw py::type_error(where() +
                         ": y must be an integer (a class), numbers, or None, found an array of " +
                         std::string(py::str(py::handle(example.y.dtype()))));
  }
  return example;
}

const OwnDataset::Kind& OwnDataset::kind() const {
  if (kind_) return *kind_;
  if (size() == 0) throw DataError("the dataset '" + class_name() + "' is empty");
  const Example first = example(0);
  kind_ = Kind{.shape = first.shape,
               .answer = first.answer,
               .outputs = first.answer == Answer::Numbers ? first.targets.numel() : 0};
  return *kind_;
}

const Shape& OwnDataset::example_shape() const {
  const py::gil_scoped_acquire gil;
  return kind().shape;
}

int64_t OwnDataset::num_outputs() const {
  const py::gil_scoped_acquire gil;
  return kind().outputs;
}

std::vector<std::string> OwnDataset::class_names() const {
  if (!class_names_.empty()) return class_names_;
  const py::gil_scoped_acquire gil;
  const py::object own_names = own("class_names");
  return own_names.is_none() ? class_names_ : own_names.cast<std::vector<std::string>>();
}

int64_t OwnDataset::num_classes() const {
  const py::gil_scoped_acquire gil;
  if (kind().answer != Answer::Label) return 0;
  if (num_classes_ > 0) return num_classes_;
  const py::object given = own("num_classes");
  num_classes_ =
      given.is_none() ? static_cast<int64_t>(class_names().size()) : given.cast<int64_t>();
  for (int64_t i = 0; num_classes_ <= 0 && i < size(); ++i) {
    const int64_t label = example(i).label;
    if (label < 0) {
      throw DataError(fmt::format("example {} of '{}' has class {}; classes begin at 0", i,
                                  class_name(), label));
    }
    largest_label_ = std::max(largest_label_, label);
    if (i + 1 == size()) num_classes_ = largest_label_ + 1;
  }
  return num_classes_;
}

void OwnDataset::require_alike(int64_t index, const Example& example) const {
  const Kind& all = kind();
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format("example {} of '{}' {}", index, class_name(), what));
  };
  if (example.shape != all.shape) {
    fail(fmt::format("has an x of shape {}, the first one has {}", example.shape.to_string(),
                     all.shape.to_string()));
  }
  const int64_t outputs = example.answer == Answer::Numbers ? example.targets.numel() : 0;
  if (example.answer != all.answer || outputs != all.outputs) {
    fail("has a y of another kind than the first one (an integer, a number of values, or None)");
  }
  if (example.answer == Answer::Label && (example.label < 0 || example.label >= num_classes())) {
    fail(fmt::format("has class {}; classes are integers from 0 to {}", example.label,
                     num_classes() - 1));
  }
}

Batch OwnDataset::gather(std::span<const int64_t> indices) const {
  const py::gil_scoped_acquire gil;
  const Kind& all = kind();
  const auto count = static_cast<int64_t>(indices.size());
  std::vector<int64_t> sizes{count}, labels;
  sizes.insert(sizes.end(), all.shape.sizes().begin(), all.shape.sizes().end());
  Batch batch;
  batch.inputs = Tensor::empty(Shape(std::span<const int64_t>(sizes)));
  batch.size = count;
  if (all.answer == Answer::Numbers) batch.targets = Tensor::empty(Shape{count, all.outputs});
  float* to = batch.inputs.mutable_data();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    if (index < 0 || index >= size()) {
      throw StateError(
          fmt::format("'{}' has {} examples, and none {}", class_name(), size(), index));
    }
    const Example one = example(index);
    require_alike(index, one);
    const bool is_byte = one.x.dtype().kind() == 'u' && one.x.dtype().itemsize() == 1;
    const float scale = is_byte ? 1.0f / 255.0f : 1.0f;  // as bytes of other datasets
    const Tensor values = to_tensor(one.x);
    to = std::ranges::transform(values.storage(), to, [&](float v) { return v * scale; }).out;
    if (all.answer == Answer::Label) labels.push_back(one.label);
    if (all.answer == Answer::Numbers) {
      std::ranges::copy(one.targets.storage(), batch.targets.mutable_data() + i * all.outputs);
    }
  }
  if (all.answer == Answer::Label) batch.labels = IndexTensor(Shape{count}, std::move(labels));
  return batch;
}

std::shared_ptr<const Dataset> dataset_of(const py::object& object) {
  if (!py::isinstance<Dataset>(object)) {
    throw py::type_error("expected a dataset, found " +
                         std::string(py::repr(py::type::of(object))) +
                         "; lacuna.ArrayDataset(x, y) makes one of arrays");
  }
  auto held = object.cast<std::shared_ptr<Dataset>>();
  if (dynamic_cast<const OwnDataset*>(held.get()) == nullptr) return held;
  const Dataset* dataset = held.get();
  return {dataset, [kept = keep(object)](const Dataset*) {}};  // its methods are the object's
}

namespace {

constexpr const char* kGiven = "python";

std::shared_ptr<const Dataset> split_of(const py::dict& splits, const char* name) {
  const py::object found = splits.contains(name) ? py::object(splits[name]) : py::none();
  return found.is_none() ? nullptr : dataset_of(found);
}

bool has_bytes(const ArrayDataset& split) { return split.examples().has_byte_inputs(); }

// Whether all inputs are from 0 to 1, as bytes are once they are divided by 255.
bool has_fractions(const ArrayDataset& split) {
  const auto* inputs = std::get_if<std::vector<float>>(&split.examples().inputs);
  return inputs != nullptr &&
         std::ranges::all_of(*inputs, [](float x) { return x >= 0.0f && x <= 1.0f; });
}

// Refuses a split whose examples have another form or meaning than those of training. One without
// answers has neither classes nor targets.
void require_as_training(const Dataset& train, const Dataset& split, const std::string& name) {
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw DataError(fmt::format("the split {} has {}, train has {}", name, found, expected));
  };
  if (split.size() == 0) return;
  if (train.vocabulary_size() == 0 && split.example_shape() != train.example_shape()) {
    refuse("examples of shape " + split.example_shape().to_string(),
           "examples of shape " + train.example_shape().to_string());
  }
  const auto *of_train = dynamic_cast<const ArrayDataset*>(&train),
             *of_split = dynamic_cast<const ArrayDataset*>(&split);
  if (of_train != nullptr && of_split != nullptr && has_bytes(*of_train) != has_bytes(*of_split)) {
    const bool are_fractions =
        has_bytes(*of_train) ? has_fractions(*of_split) : has_fractions(*of_train);
    const auto kind = [](const ArrayDataset& d) { return has_bytes(d) ? "bytes" : "numbers"; };
    if (!are_fractions) {
      refuse(kind(*of_split),
             std::string(kind(*of_train)) +
                 "; bytes (uint8) are divided by 255, so numbers next to them must "
                 "be from 0 to 1");
    }
  }
  if (split.num_outputs() != train.num_outputs() && split.num_outputs() + split.num_classes() > 0) {
    refuse(fmt::format("{} targets for each example", split.num_outputs()),
           fmt::format("{}; answers of floats are targets, and integers classes",
                       train.num_outputs()));
  }
  const std::vector<std::string> names = split.class_names(), expected = train.class_names();
  if (!names.empty() && !expected.empty() && names != expected) {
    refuse("the classes " + join_foreign(names, ", "),
           join_foreign(expected, ", ") + "; give both the same class_names, in one order");
  }
}

DataSplits splits_of(const py::dict& given) {
  for (const auto& [key, value] : given) {
    const std::string name = py::str(key);
    if (name == "train" || name == "validation" || name == "test") continue;
    throw py::type_error("data: expected the splits train, validation and test, found '" + name +
                         "'");
  }
  DataSplits splits;
  splits.train = split_of(given, "train");
  splits.validation = split_of(given, "validation");
  splits.test = split_of(given, "test");
  if (splits.train == nullptr) throw py::type_error("data: the split train is missing");
  if (splits.validation != nullptr) {
    require_as_training(*splits.train, *splits.validation, "validation");
  }
  if (splits.test != nullptr) require_as_training(*splits.train, *splits.test, "test");
  return splits;
}

// What calls in this thread were given, the innermost last.
std::vector<DataSplits>& given_here() {
  thread_local std::vector<DataSplits> all;
  return all;
}

// While it is entered, a configuration's data of type `python` is this.
class GivenData {
 public:
  explicit GivenData(const py::dict& splits) : splits_(splits_of(splits)) {}
  void enter() { given_here().push_back(splits_); }
  static void exit(const py::args&) {
    if (!given_here().empty()) given_here().pop_back();
  }

 private:
  DataSplits splits_;
};

DataSplits load_given(const Config& data, uint64_t) {
  if (!given_here().empty()) return given_here().back();
  data.at("type").error(
      "this data is given by a Python program: pass it again, as in "
      "lacuna.train(run_dir=..., resume=True, data=(x, y))");
}

bool is_for_all_types(const std::string& key) {
  static const std::vector<std::string> all = {"type",     "validation",        "test",
                                               "limit",    "normalize",         "augment",
                                               "sampling", "normalize_targets", "add_channel"};
  return std::ranges::find(all, key) != all.end();
}

// The splits that a registered class or function makes of the keys that are its own.
DataSplits load_registered(const std::shared_ptr<const void>& factory, const Config& data,
                           uint64_t seed) {
  Config keys = Config::map();
  for (const auto& [key, value] : data.children()) {
    if (is_for_all_types(key)) continue;
    keys.set(key, value.clone());
    value.mark_read();
  }
  const py::gil_scoped_acquire gil;
  const auto make =
      py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(factory.get())));
  return calling_for(data, [&] { return splits_of(make(from_config(keys), seed)); });
}

}  // namespace

void bind_own_data(py::module_& module) {
  py::class_<GivenData>(module, "_GivenData")
      .def(py::init<const py::dict&>(), py::arg("splits"))
      .def("__enter__", &GivenData::enter)
      .def("__exit__", [](GivenData&, const py::args& error) { GivenData::exit(error); });
  dataset_registry().add(kGiven, "arrays or a dataset that a Python program gives",
                         DatasetType{.load = load_given, .split_keys = split_keys_with_test()});
  module.def(
      "_register_dataset",
      [](const std::string& name, const std::string& help, const py::object& factory) {
        dataset_registry().add(
            name, help,
            DatasetType{.load = [kept = keep(factory)](
                                    const Config& data,
                                    uint64_t seed) { return load_registered(kept, data, seed); },
                        .split_keys = split_keys_with_test()});
      },
      py::arg("name"), py::arg("help"), py::arg("factory"));
}

}  // namespace lacuna::python
