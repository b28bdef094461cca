#include "lacuna/framework/data/hdf5_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/io/storage/hdf5_file.h"
#include "lacuna/framework/io/storage/hdf5_probe.h"

namespace lacuna {
namespace {

// The datasets of one split, and what is expected of them.
struct SplitNames {
  std::string inputs, targets;
};

[[noreturn]] void fail(const Hdf5File& file, const std::string& name, const std::string& what) {
  throw DataError(file.path() + ": dataset '" + name + "': " + what);
}

void require_dataset(const Hdf5File& file, const std::string& name) {
  if (file.exists(name)) {
    if (file.is_group(name)) fail(file, name, "is a group; expected an array");
    return;
  }
  const size_t slash = name.rfind('/');
  const std::string group = slash == std::string::npos || slash == 0 ? "/" : name.substr(0, slash);
  const bool has_group = file.exists(group) && file.is_group(group);
  std::vector<std::string> names = file.children(has_group ? group : "/");
  if (has_group && group != "/") {
    for (std::string& found : names) found = group + "/" + found;
  }
  fail(file, name, "not in the file; " + suggest_name(name, names));
}

void require_finite(const Hdf5File& file, const std::string& name, std::span<const float> values) {
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (bad != values.end()) {
    fail(file, name,
         fmt::format("expected finite numbers, found {:f} at flat index {}", *bad,
                     bad - values.begin()));
  }
}

std::vector<float> read_floats(const Hdf5File& file, const std::string& name) {
  std::vector<float> values = file.read_float_values(name);
  require_finite(file, name, values);
  return values;
}

void read_inputs(const Hdf5File& file, const std::string& name, Examples& examples) {
  require_dataset(file, name);
  const Shape shape = file.shape(name);
  if (shape.rank() < 2) {
    fail(file, name, "expected inputs [examples, …shape of one], found shape " + shape.to_string());
  }
  if (shape.numel() == 0) fail(file, name, "is empty: its shape is " + shape.to_string());
  examples.example_shape = shape.without_batch();
  if (file.is_uint8(name)) {
    examples.inputs = file.read_bytes(name);
  } else {
    examples.inputs = read_floats(file, name);
  }
}

void require_count(const Hdf5File& file, const SplitNames& names, int64_t inputs, int64_t targets) {
  if (inputs != targets) {
    fail(file, names.inputs,
         fmt::format("holds {} examples, dataset '{}' {}; expected as many of each", inputs,
                     names.targets, targets));
  }
}

void read_labels(const Hdf5File& file, const SplitNames& names, int64_t num_classes,
                 Examples& examples) {
  const Shape shape = file.shape(names.targets);
  if (shape.rank() != 1) {
    fail(file, names.targets, "expected labels [examples], found shape " + shape.to_string());
  }
  if (file.type(names.targets) != Hdf5Type::Integer) {
    fail(file, names.targets,
         std::string("expected integer labels, found elements of type ") +
             to_string(file.type(names.targets)) + "; set data.task: regression for numbers");
  }
  require_count(file, names, examples.size(), shape[0]);
  examples.labels = file.read_integers(names.targets);
  const int64_t bound = num_classes > 0 ? num_classes : kMaxClasses;
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    if (examples.labels[i] < 0 || examples.labels[i] >= bound) {
      fail(file, names.targets,
           fmt::format("label {} at index {} is outside of [0, {})", examples.labels[i], i, bound));
    }
  }
  examples.num_classes =
      num_classes > 0 ? num_classes : *std::ranges::max_element(examples.labels) + 1;
}

void read_values(const Hdf5File& file, const SplitNames& names, Examples& examples) {
  const Shape shape = file.shape(names.targets);
  if (shape.rank() != 1 && shape.rank() != 2) {
    fail(file, names.targets,
         "expected targets [examples] or [examples, outputs], found shape " + shape.to_string());
  }
  require_count(file, names, examples.size(), shape[0]);
  examples.num_outputs = shape.rank() == 1 ? 1 : shape[1];
  if (examples.num_outputs == 0) fail(file, names.targets, "has no outputs");
  examples.targets = read_floats(file, names.targets);
}

std::shared_ptr<const ArrayDataset> load_split(const Hdf5File& file, const SplitNames& names,
                                               const TaskKeys& task) {
  Examples examples;
  read_inputs(file, names.inputs, examples);
  require_dataset(file, names.targets);
  if (task.task == Task::Classification) {
    read_labels(file, names, task.num_classes, examples);
  } else {
    read_values(file, names, examples);
  }
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

// The splits that are named, the test split checked against the training one.
DataSplits read_splits(const Hdf5File& file, const SplitNames& train,
                       const std::optional<SplitNames>& test, TaskKeys task) {
  DataSplits splits;
  splits.train = load_split(file, train, task);
  if (!test) return splits;

  task.num_classes = splits.train->num_classes();
  splits.test = load_split(file, *test, task);
  if (splits.test->example_shape() != splits.train->example_shape() ||
      splits.test->num_outputs() != splits.train->num_outputs()) {
    fail(file, test->inputs,
         fmt::format("test examples of shape {} with {} outputs; the training examples are of "
                     "shape {} with {}",
                     splits.test->example_shape().to_string(), splits.test->num_outputs(),
                     splits.train->example_shape().to_string(), splits.train->num_outputs()));
  }
  return splits;
}

// What `read` makes of the file that `data` names, once it has come to its end in a child process.
template <class Read>
auto read_probed(const Config& data, const std::string& purpose, const Read& read) {
  const auto links =
      data.get<bool>("follow_links", false) ? Hdf5Links::Followed : Hdf5Links::NotAskedFor;
  const auto path = data.required<std::string>("path");
  const auto open_and_read = [&] { return read(Hdf5File::open(path, links)); };
  probe_hdf5(
      {.path = path, .purpose = "data: " + purpose, .has_time_limit = links != Hdf5Links::Followed},
      [&] { open_and_read(); });
  return open_and_read();
}

}  // namespace

bool has_hdf5_training(const Config& data) {
  const auto name = data.get<std::string>("train_inputs", "train_inputs");
  return read_probed(data, "is there " + name,
                     [&](const Hdf5File& file) { return file.exists(name); });
}

DataSplits load_hdf5_held_out(const Config& data, const KnownData& known) {
  TaskKeys task = read_task(data);
  task.num_classes = known.num_classes;
  const auto inputs = data.optional<std::string>("test_inputs");
  const auto targets = data.optional<std::string>("test_targets");
  DataSplits splits;
  if (!inputs || !targets) return splits;
  const SplitNames test{*inputs, *targets};
  splits.test = read_probed(data, *inputs + ", " + *targets,
                            [&](const Hdf5File& file) { return load_split(file, test, task); });
  return splits;
}

DataSplits load_hdf5(const Config& data, uint64_t /*seed*/) {
  const TaskKeys task = read_task(data);
  const SplitNames train{data.get<std::string>("train_inputs", "train_inputs"),
                         data.get<std::string>("train_targets", "train_targets")};
  const auto test_inputs = data.optional<std::string>("test_inputs");
  const auto test_targets = data.optional<std::string>("test_targets");
  if (test_inputs.has_value() != test_targets.has_value()) {
    data.error("test_inputs and test_targets go together; found only one of them");
  }
  std::optional<SplitNames> test;
  if (test_inputs) test = SplitNames{*test_inputs, *test_targets};
  const std::string names = train.inputs + ", " + train.targets + ", " + test_inputs.value_or("") +
                            ", " + test_targets.value_or("");
  return read_probed(data, names,
                     [&](const Hdf5File& file) { return read_splits(file, train, test, task); });
}

}  // namespace lacuna
