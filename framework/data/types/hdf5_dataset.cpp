#include "lacuna/framework/data/types/hdf5_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"
#include "lacuna/framework/io/log.h"

namespace lacuna {
namespace {

// The datasets of one split, and what is expected of them.
struct SplitNames {
  std::string inputs, targets;
};

enum class Channels { First, Last };

Channels read_channels(const Config& data) {
  const auto name = data.get<std::string>("channels", "first");
  if (name != "first" && name != "last") data.get("channels").fail("first or last");
  return name == "first" ? Channels::First : Channels::Last;
}

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

// [n, …, channels] becomes [n, channels, …].
template <class T>
std::vector<T> channels_to_front(const std::vector<T>& values, int64_t channels, int64_t places) {
  std::vector<T> turned(values.size());
  const int64_t one = channels * places;
  for (int64_t begin = 0; begin < static_cast<int64_t>(values.size()); begin += one) {
    for (int64_t place = 0; place < places; ++place) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        turned[static_cast<size_t>(begin + channel * places + place)] =
            values[static_cast<size_t>(begin + place * channels + channel)];
      }
    }
  }
  return turned;
}

void move_channels(const Hdf5File& file, const std::string& name, Examples& examples) {
  const Shape& shape = examples.example_shape;
  if (shape.rank() < 2) {
    fail(file, name,
         "has examples of shape " + shape.to_string() +
             ", without channels; leave out data.channels: last");
  }
  const int64_t channels = shape[shape.rank() - 1], places = shape.numel() / channels;
  std::visit([&](auto& values) { values = channels_to_front(values, channels, places); },
             examples.inputs);
  std::vector<int64_t> sizes = {channels};
  for (int i = 0; i + 1 < shape.rank(); ++i) sizes.push_back(shape[i]);
  examples.example_shape = Shape(sizes);
}

// Of images as most tools but PyTorch store them, the last size is the small one.
void report_channels_last(const Config& data, const Shape& shape) {
  if (shape.rank() != 3 || data.get<std::string>("channels", "first") == "last") return;
  const int64_t last = shape[2];
  if ((last != 1 && last != 3 && last != 4) || last >= std::min(shape[0], shape[1])) return;
  log_warning(fmt::format(
      "{}: examples of shape {} are read as {} channels of {} x {}; if they are images with {} "
      "channels last, set data.channels: last",
      data.get("path").where(), shape.to_string(), shape[0], shape[1], last, last));
}

void read_inputs(const Hdf5File& file, const std::string& name, Channels channels,
                 Examples& examples) {
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
  if (channels == Channels::Last) move_channels(file, name, examples);
}

void require_count(const Hdf5File& file, const SplitNames& names, int64_t inputs, int64_t targets) {
  if (inputs != targets) {
    fail(file, names.inputs,
         fmt::format("holds {} examples, dataset '{}' {}; expected as many of each", inputs,
                     names.targets, targets));
  }
}

// Labels as they are in the file, their range not checked.
struct Hdf5Labels {
  std::vector<int64_t> labels = {};  // [examples]
  int64_t columns = 0;  // of one-hot rows, which say how many classes there are; 0: they do not
};

// The values as integers, whatever type they have.
std::vector<int64_t> read_whole(const Hdf5File& file, const std::string& name) {
  const Hdf5Type type = file.type(name);
  if (type == Hdf5Type::Integer) return file.read_integers(name);
  if (type == Hdf5Type::Text) {
    fail(file, name,
         "expected integer labels, found text; store numbers instead: `names, labels = "
         "numpy.unique(f['" +
             name + "'].asstr()[:], return_inverse=True)`");
  }
  if (type != Hdf5Type::Float) {
    fail(file, name,
         std::string("expected integer labels, found elements of type ") + to_string(type) +
             "; store them with .astype('int64')");
  }
  const std::vector<float> values = file.read_float_values(name);
  std::vector<int64_t> whole;
  whole.reserve(values.size());
  constexpr float kMostExact = 1 << 24;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && values[i] == std::floor(values[i]) &&
        std::abs(values[i]) <= kMostExact) {
      whole.push_back(static_cast<int64_t>(values[i]));
      continue;
    }
    fail(file, name,
         fmt::format("expected integer labels, found {:g} at flat index {}; set data.task: "
                     "regression if they are numbers to be predicted",
                     values[i], i));
  }
  return whole;
}

// The place of the one in each row.
Hdf5Labels from_one_hot(const Hdf5File& file, const std::string& name, const Shape& shape) {
  const auto columns = static_cast<size_t>(shape[1]);
  const std::string otherwise =
      "; set data.task: regression for several numbers per example, or store labels [examples], as "
      "`scores.argmax(axis=1)` gives them";
  const std::string expected =
      "expected labels [examples], or rows with a single 1 (one-hot), found shape " +
      shape.to_string();
  if (file.type(name) == Hdf5Type::Float) {
    const std::vector<float> values = file.read_float_values(name);
    const auto other =
        std::ranges::find_if(values, [](float v) { return !(v == 0.0f || v == 1.0f); });
    if (other != values.end()) {
      fail(file, name, fmt::format("{} with the value {:g}{}", expected, *other, otherwise));
    }
  }
  const std::vector<int64_t> values = read_whole(file, name);
  Hdf5Labels result{.columns = shape[1]};
  for (size_t row = 0; row < values.size() / columns; ++row) {
    const auto of_row = std::span(values).subspan(row * columns, columns);
    const auto one = std::ranges::find(of_row, 1);
    if (std::ranges::count(of_row, 0) != shape[1] - 1 || one == of_row.end()) {
      fail(file, name, fmt::format("{}, whose row {} is none{}", expected, row, otherwise));
    }
    result.labels.push_back(one - of_row.begin());
  }
  return result;
}

// Integers [n] or [n, 1], the same as floating-point numbers that are whole, or one-hot rows
// [n, classes] of either type. What else there is, is refused with the way to convert it.
Hdf5Labels read_hdf5_labels(const Hdf5File& file, const std::string& name) {
  const Shape shape = file.shape(name);
  const bool is_column = shape.rank() == 2 && shape[1] == 1;
  if (shape.rank() == 1 || is_column) return {.labels = read_whole(file, name)};
  if (shape.rank() == 2 && shape[1] > 1) {
    const Hdf5Type type = file.type(name);
    if (type == Hdf5Type::Integer || type == Hdf5Type::Float)
      return from_one_hot(file, name, shape);
  }
  fail(file, name,
       "expected labels [examples], [examples, 1] or one-hot [examples, classes], found shape " +
           shape.to_string());
}

void read_labels(const Hdf5File& file, const SplitNames& names, int64_t num_classes,
                 Examples& examples) {
  const Hdf5Labels read = read_hdf5_labels(file, names.targets);
  require_count(file, names, examples.size(), static_cast<int64_t>(read.labels.size()));
  examples.labels = read.labels;
  if (read.columns > 0 && num_classes > 0 && read.columns != num_classes) {
    fail(
        file, names.targets,
        fmt::format("has one-hot rows of {} classes, and there are {}", read.columns, num_classes));
  }
  const int64_t bound = num_classes > 0 ? num_classes : kMaxClasses;
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    if (examples.labels[i] < 0 || examples.labels[i] >= bound) {
      fail(file, names.targets,
           fmt::format("label {} at index {} is outside of [0, {}){}", examples.labels[i], i, bound,
                       num_classes > 0 ? "" : "; number the classes 0, 1, 2, …"));
    }
  }
  examples.num_classes = num_classes > 0    ? num_classes
                         : read.columns > 0 ? read.columns
                                            : *std::ranges::max_element(examples.labels) + 1;
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
                                               const TaskKeys& task, Channels channels) {
  Examples examples;
  read_inputs(file, names.inputs, channels, examples);
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
                       const std::optional<SplitNames>& test, TaskKeys task, Channels channels) {
  DataSplits splits;
  splits.train = load_split(file, train, task, channels);
  if (!test) return splits;

  task.num_classes = splits.train->num_classes();
  splits.test = load_split(file, *test, task, channels);
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

bool has_hdf5_training(const Config& data) {
  const auto name = data.get<std::string>("train_inputs", "train_inputs");
  std::error_code unknown;
  if (!std::filesystem::exists(data.required<std::string>("path"), unknown)) return false;
  return read_probed(data, "is there " + name,
                     [&](const Hdf5File& file) { return file.exists(name); });
}

DataSplits load_hdf5_held_out(const Config& data, uint64_t /*seed*/, const KnownData& known) {
  TaskKeys task = read_task(data);
  task.num_classes = known.num_classes;
  const auto inputs = data.optional<std::string>("test_inputs");
  const auto targets = data.optional<std::string>("test_targets");
  DataSplits splits;
  if (!inputs || !targets) return splits;
  const SplitNames test{*inputs, *targets};
  const Channels channels = read_channels(data);
  splits.test = read_probed(data, *inputs + ", " + *targets, [&](const Hdf5File& file) {
    return load_split(file, test, task, channels);
  });
  return splits;
}

}  // namespace

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
  const Channels channels = read_channels(data);
  DataSplits splits = read_probed(data, names, [&](const Hdf5File& file) {
    return read_splits(file, train, test, task, channels);
  });
  report_channels_last(data, splits.train->example_shape());  // the process that tried it is silent
  return splits;
}

DatasetType hdf5_dataset() {
  return {.load = load_hdf5,
          .paths = {"path"},
          .has_training_files = has_hdf5_training,
          .load_held_out = load_hdf5_held_out,
          .late_keys = std::vector<std::string>()};
}

}  // namespace lacuna
