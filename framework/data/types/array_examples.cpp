#include "lacuna/framework/data/types/array_examples.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/log.h"

namespace lacuna {
namespace {

[[noreturn]] void fail_at(const ArraySource& source, const std::string& name,
                          const std::string& what) {
  throw DataError(source.where(name) + ": " + what);
}

std::vector<float> read_finite(const ArraySource& source, const std::string& name) {
  std::vector<float> values = source.read_floats(name);
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (bad != values.end()) {
    fail_at(source, name,
            fmt::format("expected finite numbers, found {:f} at flat index {}", *bad,
                        bad - values.begin()));
  }
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

void move_channels(const ArraySource& source, const std::string& name, Examples& examples) {
  const Shape& shape = examples.example_shape;
  if (shape.rank() < 2) {
    fail_at(source, name,
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

void require_count(const ArraySource& source, const ArrayNames& names, int64_t inputs,
                   int64_t targets) {
  if (inputs != targets) {
    fail_at(source, names.inputs,
            fmt::format("holds {} examples, dataset '{}' {}; expected as many of each", inputs,
                        names.targets, targets));
  }
}

// Labels as they are in the file, their range not checked.
struct ArrayLabels {
  std::vector<int64_t> labels = {};  // [examples]
  int64_t columns = 0;  // of one-hot rows: the number of classes; 0: labels are not one-hot
  std::vector<std::string> names = {};  // of text: the classes
};

// The values as integers, whatever type they have.
std::vector<int64_t> read_whole(const ArraySource& source, const std::string& name) {
  const ArrayKind kind = source.kind(name);
  if (kind == ArrayKind::Integer) return source.read_integers(name);
  if (kind != ArrayKind::Float) {
    fail_at(source, name,
            "expected labels that are integers or text, found elements of type " +
                source.type_name(name) + "; store them with .astype('int64')");
  }
  const std::vector<float> values = source.read_floats(name);
  std::vector<int64_t> whole;
  whole.reserve(values.size());
  constexpr float kMostExact = 1 << 24;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && values[i] == std::floor(values[i]) &&
        std::abs(values[i]) <= kMostExact) {
      whole.push_back(static_cast<int64_t>(values[i]));
      continue;
    }
    fail_at(source, name,
            fmt::format("expected integer labels, found {:g} at flat index {}; set data.task: "
                        "regression if they are numbers to predict",
                        values[i], i));
  }
  return whole;
}

// Texts are names of classes, which are known, or found here and numbered in their order.
ArrayLabels from_texts(const ArraySource& source, const std::string& name, const ArrayKeys& keys) {
  const std::vector<std::string> texts = source.read_texts(name);
  std::map<std::string, int64_t, std::less<>> label_of;
  ArrayLabels result{.names = keys.class_names};
  const auto number = [&] {
    for (size_t i = 0; i < result.names.size(); ++i) {
      label_of[result.names[i]] = static_cast<int64_t>(i);
    }
  };
  if (result.names.empty()) {
    if (keys.task.num_classes > 0) {
      fail_at(source, name,
              "labels are text, whose classes are counted by their names; leave data.num_classes "
              "out (all splits must have integers, or all must have text)");
    }
    const std::set<std::string> sorted(texts.begin(), texts.end());
    result.names.assign(sorted.begin(), sorted.end());
    constexpr size_t kFew = 20;
    if (result.names.size() >= kFew && result.names.size() == texts.size()) {
      fail_at(source, name,
              fmt::format("each of the {} examples has a class of its own, as '{}'", texts.size(),
                          printable(texts.front(), 40)));
    }
  }
  number();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto found = label_of.find(texts[i]);
    const bool is_name =
        !texts[i].empty() && is_utf8(texts[i]) && texts[i].find('\0') == std::string::npos;
    if (!is_name) {
      fail_at(source, name,
              fmt::format("expected names of classes, which are text in UTF-8, found '{}' at index "
                          "{}",
                          printable(texts[i], 40), i));
    }
    if (found == label_of.end()) {
      constexpr size_t kMost = 1000;
      fail_at(source, name,
              fmt::format(
                  "expected classes of the training data ({}), found '{}' at index {}",
                  suggest_name(texts[i],
                               std::span(result.names).first(std::min(result.names.size(), kMost))),
                  printable(texts[i], 40), i));
    }
    result.labels.push_back(found->second);
  }
  return result;
}

// The place of the one in each row.
ArrayLabels from_one_hot(const ArraySource& source, const std::string& name, const Shape& shape) {
  const auto columns = static_cast<size_t>(shape[1]);
  const std::string otherwise =
      "; set data.task: regression for several numbers per example, or store labels [examples], as "
      "`scores.argmax(axis=1)` gives them";
  const std::string expected =
      "expected labels [examples], or rows with a single 1 (one-hot), found shape " +
      shape.to_string();
  if (source.kind(name) == ArrayKind::Float) {
    const std::vector<float> values = source.read_floats(name);
    const auto other =
        std::ranges::find_if(values, [](float v) { return !(v == 0.0f || v == 1.0f); });
    if (other != values.end()) {
      fail_at(source, name, fmt::format("{} with the value {:g}{}", expected, *other, otherwise));
    }
  }
  const std::vector<int64_t> values = read_whole(source, name);
  ArrayLabels result{.columns = shape[1]};
  for (size_t row = 0; row < values.size() / columns; ++row) {
    const auto of_row = std::span(values).subspan(row * columns, columns);
    const auto one = std::ranges::find(of_row, 1);
    if (std::ranges::count(of_row, 0) != shape[1] - 1 || one == of_row.end()) {
      fail_at(source, name, fmt::format("{}, whose row {} is none{}", expected, row, otherwise));
    }
    result.labels.push_back(one - of_row.begin());
  }
  return result;
}

// Integers [n] or [n, 1], the same as floating-point numbers that are whole, or as text, or one-hot
// rows [n, classes] of numbers. What else there is, is refused with the way to convert it.
ArrayLabels read_any_labels(const ArraySource& source, const std::string& name,
                            const ArrayKeys& keys) {
  const Shape shape = source.shape(name);
  const ArrayKind kind = source.kind(name);
  const bool is_column = shape.rank() == 2 && shape[1] == 1;
  if (shape.rank() == 1 || is_column) {
    if (kind == ArrayKind::Text) return from_texts(source, name, keys);
    if (!keys.class_names.empty()) {
      fail_at(source, name,
              "expected the names of classes, as in training, found " + source.type_name(name));
    }
    return {.labels = read_whole(source, name)};
  }
  if (shape.rank() == 2 && shape[1] > 1 &&
      (kind == ArrayKind::Integer || kind == ArrayKind::Float)) {
    return from_one_hot(source, name, shape);
  }
  fail_at(source, name,
          "expected labels [examples], [examples, 1] or one-hot [examples, classes], found shape " +
              shape.to_string());
}

void read_labels(const ArraySource& source, const ArrayNames& names, const ArrayKeys& keys,
                 Examples& examples) {
  const int64_t num_classes = keys.task.num_classes;
  const ArrayLabels read = read_any_labels(source, names.targets, keys);
  require_count(source, names, examples.size(), static_cast<int64_t>(read.labels.size()));
  examples.labels = read.labels;
  examples.class_names = read.names;
  if (!read.names.empty()) {
    examples.num_classes = static_cast<int64_t>(read.names.size());
    return;
  }
  if (read.columns > 0 && num_classes > 0 && read.columns != num_classes) {
    fail_at(
        source, names.targets,
        fmt::format("has one-hot rows of {} classes, and there are {}", read.columns, num_classes));
  }
  const int64_t bound = num_classes > 0 ? num_classes : kMaxClasses;
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    if (examples.labels[i] < 0 || examples.labels[i] >= bound) {
      fail_at(source, names.targets,
              fmt::format("label {} at index {} is outside of [0, {}){}", examples.labels[i], i,
                          bound, num_classes > 0 ? "" : "; number the classes 0, 1, 2, …"));
    }
  }
  examples.num_classes = num_classes > 0    ? num_classes
                         : read.columns > 0 ? read.columns
                                            : *std::ranges::max_element(examples.labels) + 1;
}

void read_values(const ArraySource& source, const ArrayNames& names, Examples& examples) {
  const Shape shape = source.shape(names.targets);
  if (shape.rank() != 1 && shape.rank() != 2) {
    fail_at(source, names.targets,
            "expected targets [examples] or [examples, outputs], found shape " + shape.to_string());
  }
  require_count(source, names, examples.size(), shape[0]);
  examples.num_outputs = shape.rank() == 1 ? 1 : shape[1];
  if (examples.num_outputs == 0) fail_at(source, names.targets, "has no outputs");
  examples.targets = read_finite(source, names.targets);
}

}  // namespace

Channels read_channels(const Config& data) {
  const auto name = data.get<std::string>("channels", "first");
  if (name != "first" && name != "last") data.get("channels").fail("first or last");
  return name == "first" ? Channels::First : Channels::Last;
}

std::optional<ArrayNames> read_test_names(const Config& data, const ArrayNames& keys) {
  const auto inputs = data.optional<std::string>(keys.inputs);
  const auto targets = data.optional<std::string>(keys.targets);
  if (inputs.has_value() != targets.has_value()) {
    data.error(keys.inputs + " and " + keys.targets + " go together; found only one of them");
  }
  if (!inputs) return std::nullopt;
  return ArrayNames{*inputs, *targets};
}

// Of images as most tools but PyTorch store them, the last size is the small one.
void report_channels_last(const Config& data, const char* key, const Shape& shape) {
  if (shape.rank() != 3 || data.get<std::string>("channels", "first") == "last") return;
  const int64_t last = shape[2];
  if ((last != 1 && last != 3 && last != 4) || last >= std::min(shape[0], shape[1])) return;
  log_warning(fmt::format(
      "{}: examples of shape {} are read as {} channels of {} x {}; if they are images with {} "
      "channels last, set data.channels: last",
      data.get(key).where(), shape.to_string(), shape[0], shape[1], last, last));
}

Examples read_array_inputs(const ArraySource& source, const std::string& name, Channels channels) {
  source.require(name);
  const Shape shape = source.shape(name);
  if (shape.rank() < 2) {
    fail_at(source, name,
            "expected inputs [examples, …shape of one], found shape " + shape.to_string());
  }
  if (shape.numel() == 0) fail_at(source, name, "is empty: its shape is " + shape.to_string());
  Examples examples;
  examples.example_shape = shape.without_batch();
  if (source.is_uint8(name)) {
    examples.inputs = source.read_bytes(name);
  } else {
    examples.inputs = read_finite(source, name);
  }
  if (channels == Channels::Last) move_channels(source, name, examples);
  return examples;
}

std::shared_ptr<const ArrayDataset> read_array_split(const ArraySource& source,
                                                     const ArrayNames& names,
                                                     const ArrayKeys& keys) {
  Examples examples = read_array_inputs(source, names.inputs, keys.channels);
  source.require(names.targets);
  if (keys.task.task == Task::Classification) {
    read_labels(source, names, keys, examples);
  } else {
    read_values(source, names, examples);
  }
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

DataSplits read_array_splits(const ArraySource& source, const ArrayNames& train,
                             const std::optional<ArrayNames>& test, ArrayKeys keys) {
  DataSplits splits;
  splits.train = read_array_split(source, train, keys);
  if (!test) return splits;
  keys.task.num_classes = splits.train->num_classes();
  keys.class_names = splits.train->class_names();
  if (source.is_uint8(train.inputs) != source.is_uint8(test->inputs)) {
    fail_at(source, test->inputs,
            fmt::format("the test inputs are {}, and the training inputs '{}' are {}; bytes are "
                        "divided by 255, so give both in the same type",
                        source.is_uint8(test->inputs) ? "bytes" : "no bytes", train.inputs,
                        source.is_uint8(train.inputs) ? "bytes" : "no bytes"));
  }
  splits.test = read_array_split(source, *test, keys);
  if (splits.test->example_shape() != splits.train->example_shape() ||
      splits.test->num_outputs() != splits.train->num_outputs()) {
    fail_at(source, test->inputs,
            fmt::format("test examples of shape {} with {} outputs; the training examples are of "
                        "shape {} with {}",
                        splits.test->example_shape().to_string(), splits.test->num_outputs(),
                        splits.train->example_shape().to_string(), splits.train->num_outputs()));
  }
  return splits;
}

}  // namespace lacuna
