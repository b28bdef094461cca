#include "lacuna/framework/data/types/npz_dataset.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/types/array_examples.hpp"
#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna {
namespace {

constexpr const char* kTrainInputs = "train_inputs";

// An array in an opened file.
struct FileArray {
  const ArrayFile& file;
  size_t index = 0;

  const ArrayEntry& entry() const { return file.arrays()[index]; }
};

// The common part of both kinds of files: `find` returns the array that a name means.
class NumpySource : public ArraySource {
 public:
  Shape shape(const std::string& name) const override { return find(name).entry().shape; }
  ArrayKind kind(const std::string& name) const override {
    const ArrayEntry& entry = find(name).entry();
    if (is_float(entry.type)) return ArrayKind::Float;
    if (is_integer(entry.type) || entry.type == ElementType::Bool) return ArrayKind::Integer;
    return entry.character > 0 ? ArrayKind::Text : ArrayKind::Other;
  }
  std::string type_name(const std::string& name) const override {
    return find(name).entry().type_name;
  }
  bool is_uint8(const std::string& name) const override {
    return find(name).entry().type == ElementType::U8;
  }
  std::vector<float> read_floats(const std::string& name) const override {
    const FileArray array = require_room(name, sizeof(float));
    if (is_float(array.entry().type)) return array.file.read(array.index).to_vector();
    if (kind(name) != ArrayKind::Integer) {
      throw DataError(where(name) + ": expected numbers, found " + type_name(name));
    }
    const std::vector<int64_t> integers = read_integers(name);
    return {integers.begin(), integers.end()};
  }
  std::vector<int64_t> read_integers(const std::string& name) const override {
    const FileArray array = require_room(name, sizeof(int64_t));
    if (array.entry().type != ElementType::Bool) return array.file.read_integers(array.index);
    const ByteArray mask = array.file.read_mask(array.index);
    return {mask.values.begin(), mask.values.end()};
  }
  std::vector<uint8_t> read_bytes(const std::string& name) const override {
    const FileArray array = require_room(name, 1);
    return array.file.read_uint8(array.index);
  }
  std::vector<std::string> read_texts(const std::string& name) const override {
    const FileArray array = require_room(name, sizeof(std::string));
    return array.file.read_texts(array.index);
  }

 protected:
  virtual FileArray find(const std::string& name) const = 0;

 private:
  // A header may claim, and packed zeros may become, more than there is memory for.
  FileArray require_room(const std::string& name, size_t element_bytes) const {
    const FileArray array = find(name);
    constexpr int64_t kAsksNothing = int64_t{1} << 20;
    const int64_t count = array.entry().shape.numel();
    if (count > kAsksNothing &&
        count > available_memory() / static_cast<int64_t>(element_bytes + 8)) {
      throw DataError(where(name) + ": its " + array.entry().shape.to_string() +
                      " elements do not fit in memory");
    }
    return array;
  }
};

// Arrays of one .npz file.
class NpzSource final : public NumpySource {
 public:
  explicit NpzSource(const std::string& path) : file_(open_array_file(path)) {
    for (const ArrayEntry& entry : file_->arrays()) names_.push_back(entry.name);
  }

  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const {
    return std::ranges::find(names_, name) != names_.end();
  }
  std::string where(const std::string& name) const override {
    return file_->path() + ": array '" + name + "'";
  }
  void require(const std::string& name) const override {
    if (!has(name)) {
      throw DataError(where(name) + ": not in the file; " + suggest_name(name, names_));
    }
  }

 private:
  FileArray find(const std::string& name) const override {
    require(name);
    return {*file_, static_cast<size_t>(std::ranges::find(names_, name) - names_.begin())};
  }

  std::unique_ptr<ArrayFile> file_;
  std::vector<std::string> names_;
};

// Files of one array each, by their paths.
class NpySource final : public NumpySource {
 public:
  std::string where(const std::string& path) const override { return path; }
  void require(const std::string& path) const override { find(path); }

 private:
  FileArray find(const std::string& path) const override {
    std::unique_ptr<ArrayFile>& file = files_[path];
    if (file == nullptr) {
      if (array_format(path) != ArrayFormat::Npy) {
        throw DataError(
            path + ": expected an .npy file (for arrays in one .npz file, set data.type: npz)");
      }
      file = open_array_file(path);
    }
    return {*file, 0};
  }

  mutable std::map<std::string, std::unique_ptr<ArrayFile>> files_;  // opened when asked for
};

std::string path_of_archive(const Config& data) {
  const auto path = data.required<std::string>("path");
  if (array_format(path) != ArrayFormat::Npz) {
    data.get("path").error("'" + path +
                           "' does not end in .npz; for one file per array, set data.type: npy");
  }
  return path;
}

const ArrayNames kNpyTest{"x_test", "y_test"};

DataSplits read_test_split(const ArraySource& source, const std::optional<ArrayNames>& test,
                           const Config& data, const KnownData& known) {
  ArrayKeys keys{
      .task = read_task(data), .channels = read_channels(data), .class_names = known.class_names};
  keys.task.num_classes = known.num_classes;
  DataSplits splits;
  if (test) splits.test = read_array_split(source, *test, keys);
  return splits;
}

DataSplits load_from(const ArraySource& source, const ArrayNames& train,
                     const std::optional<ArrayNames>& test, const Config& data, const char* key) {
  const ArrayKeys keys{.task = read_task(data), .channels = read_channels(data)};
  DataSplits splits = read_array_splits(source, train, test, keys);
  report_channels_last(data, key, splits.train->example_shape());
  return splits;
}

}  // namespace

DataSplits load_npz(const Config& data, uint64_t /*seed*/) {
  const NpzSource source(path_of_archive(data));
  const ArrayNames train{data.get<std::string>(kTrainInputs, kTrainInputs),
                         data.get<std::string>("train_targets", "train_targets")};
  return load_from(source, train, read_test_names(data), data, "path");
}

DataSplits load_npy(const Config& data, uint64_t /*seed*/) {
  const NpySource source;
  const ArrayNames train{data.required<std::string>("x_train"),
                         data.required<std::string>("y_train")};
  return load_from(source, train, read_test_names(data, kNpyTest), data, "x_train");
}

bool is_numpy_name(const std::string& path) {
  return array_format(path) == ArrayFormat::Npz || array_format(path) == ArrayFormat::Npy;
}

Examples read_numpy_inputs(const std::string& path, const Config& data,
                           const Shape& example_shape) {
  const Config layout = data.peek("channels");
  const Channels channels = layout.text() == "last" ? Channels::Last : Channels::First;
  if (array_format(path) == ArrayFormat::Npy) {
    return read_array_inputs(NpySource(), path, channels);
  }
  const NpzSource source(path);
  for (const std::string& name :
       {std::string("inputs"), std::string("test_inputs"), data.peek("test_inputs").text(),
        data.peek(kTrainInputs).text(), source.names().size() == 1 ? source.names()[0] : ""}) {
    if (!name.empty() && source.has(name)) return read_array_inputs(source, name, channels);
  }
  throw DataError(
      fmt::format("{}: none of its arrays ({}) is called inputs, with shape [examples, …{}]", path,
                  join(source.names(), ", "), example_shape.to_string()));
}

namespace {

std::optional<Examples> read_numpy(const std::string& path, const Config& data,
                                   const KnownData& known) {
  if (!is_numpy_name(path)) return std::nullopt;
  return read_numpy_inputs(path, data, known.example_shape);
}

bool has_npz_training(const Config& data) {
  const auto path = data.required<std::string>("path");
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return false;
  return NpzSource(path).has(data.get<std::string>(kTrainInputs, kTrainInputs));
}

}  // namespace

DatasetType npz_dataset() {
  return {.load = load_npz,
          .paths = {"path"},
          .has_training_files = has_npz_training,
          .load_held_out =
              [](const Config& data, uint64_t, const KnownData& known) {
                return read_test_split(NpzSource(path_of_archive(data)), read_test_names(data),
                                       data, known);
              },
          .read_inputs = read_numpy,
          .split_keys = split_keys_with_test(),
          .late_keys = std::vector<std::string>{"test", "train_inputs", "train_targets", "task",
                                                "channels", "test_inputs", "test_targets"}};
}

DatasetType npy_dataset() {
  return {.load = load_npy,
          .paths = {"x_train", "y_train", "x_test", "y_test"},
          .load_held_out =
              [](const Config& data, uint64_t, const KnownData& known) {
                return read_test_split(NpySource(), read_test_names(data, kNpyTest), data, known);
              },
          .read_inputs = read_numpy,
          .split_keys = split_keys_with_test(),
          .late_keys = std::vector<std::string>{"test"}};
}

}  // namespace lacuna
