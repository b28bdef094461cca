#include "lacuna/framework/data/types/hdf5_dataset.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/types/array_examples.hpp"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"

namespace lacuna {
namespace {

// The datasets of an open file.
class Hdf5Source final : public ArraySource {
 public:
  explicit Hdf5Source(const Hdf5File& file) : file_(file) {}

  std::string where(const std::string& name) const override {
    return file_.path() + ": dataset '" + name + "'";
  }
  void require(const std::string& name) const override {
    const auto fail = [&](const std::string& what) { throw DataError(where(name) + ": " + what); };
    if (file_.exists(name)) {
      if (file_.is_group(name)) fail("is a group; expected an array");
      return;
    }
    const size_t slash = name.rfind('/');
    const std::string group =
        slash == std::string::npos || slash == 0 ? "/" : name.substr(0, slash);
    const bool has_group = file_.exists(group) && file_.is_group(group);
    std::vector<std::string> names = file_.children(has_group ? group : "/");
    if (has_group && group != "/") {
      for (std::string& found : names) found = group + "/" + found;
    }
    fail("not in the file; " + suggest_name(name, names));
  }
  Shape shape(const std::string& name) const override { return file_.shape(name); }
  ArrayKind kind(const std::string& name) const override {
    switch (file_.type(name)) {
      case Hdf5Type::Float:
        return ArrayKind::Float;
      case Hdf5Type::Integer:
        return ArrayKind::Integer;
      case Hdf5Type::Text:
        return ArrayKind::Text;
      default:
        return ArrayKind::Other;
    }
  }
  std::string type_name(const std::string& name) const override {
    return to_string(file_.type(name));
  }
  bool is_uint8(const std::string& name) const override { return file_.is_uint8(name); }
  std::vector<float> read_floats(const std::string& name) const override {
    return file_.read_float_values(name);
  }
  std::vector<int64_t> read_integers(const std::string& name) const override {
    return file_.read_integers(name);
  }
  std::vector<uint8_t> read_bytes(const std::string& name) const override {
    return file_.read_bytes(name);
  }
  std::vector<std::string> read_texts(const std::string& name) const override {
    return file_.read_texts(name);
  }

 private:
  const Hdf5File& file_;
};

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
  ArrayKeys keys{
      .task = read_task(data), .channels = read_channels(data), .class_names = known.class_names};
  keys.task.num_classes = known.num_classes;
  const std::optional<ArrayNames> test = read_test_names(data);
  DataSplits splits;
  if (!test) return splits;
  splits.test = read_probed(data, test->inputs + ", " + test->targets, [&](const Hdf5File& file) {
    return read_array_split(Hdf5Source(file), *test, keys);
  });
  return splits;
}

}  // namespace

DataSplits load_hdf5(const Config& data, uint64_t /*seed*/) {
  const TaskKeys task = read_task(data);
  const ArrayNames train{data.get<std::string>("train_inputs", "train_inputs"),
                         data.get<std::string>("train_targets", "train_targets")};
  const std::optional<ArrayNames> test = read_test_names(data);
  const std::string names = train.inputs + ", " + train.targets + ", " +
                            (test ? test->inputs + ", " + test->targets : std::string(", "));
  const ArrayKeys keys{.task = task, .channels = read_channels(data)};
  DataSplits splits = read_probed(data, names, [&](const Hdf5File& file) {
    return read_array_splits(Hdf5Source(file), train, test, keys);
  });
  report_channels_last(data, "path", splits.train->example_shape());  // the child is silent
  return splits;
}

DatasetType hdf5_dataset() {
  return {.load = load_hdf5,
          .paths = {"path"},
          .has_training_files = has_hdf5_training,
          .load_held_out = load_hdf5_held_out,
          .split_keys = split_keys_with_test(),
          .late_keys = std::vector<std::string>{"test"}};
}

}  // namespace lacuna
