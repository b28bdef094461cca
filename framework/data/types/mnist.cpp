#include "lacuna/framework/data/types/mnist.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/formats/idx.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrain = "train";
constexpr const char* kTest = "t10k";

std::string images_name(const std::string& split) { return split + "-images-idx3-ubyte"; }
std::string labels_name(const std::string& split) { return split + "-labels-idx1-ubyte"; }

bool is_there(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  return fs::exists(folder / name, ignored) || fs::exists(folder / (name + ".gz"), ignored);
}

fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const fs::path& path : {folder / name, folder / (name + ".gz")}) {
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  throw DataError((folder / name).string() + ": no such file, with or without .gz");
}

std::shared_ptr<const ArrayDataset> load_split(const fs::path& folder, const std::string& split,
                                               int64_t num_classes) {
  const fs::path images_path = find_file(folder, images_name(split));
  const fs::path labels_path = find_file(folder, labels_name(split));
  IdxImages images = read_idx_images(images_path);
  const std::vector<uint8_t> labels = read_idx_labels(labels_path);
  if (images.count != static_cast<int64_t>(labels.size())) {
    throw DataError(fmt::format("{} holds {}, {} holds {}; expected as many of each",
                                images_path.string(), plural(images.count, "image"),
                                labels_path.string(),
                                plural(static_cast<int64_t>(labels.size()), "label")));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= num_classes) {
      throw DataError(fmt::format("{}: label {} at index {} is outside of [0, {})",
                                  labels_path.string(), labels[i], i, num_classes));
    }
  }
  Examples examples;
  examples.example_shape = Shape{images.rows, images.columns};
  examples.inputs = std::move(images.pixels);
  examples.labels.assign(labels.begin(), labels.end());
  examples.num_classes = num_classes;
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

bool has_mnist_training(const Config& data) {
  const fs::path folder = data.required<std::string>("dir");
  return is_there(folder, images_name(kTrain)) && is_there(folder, labels_name(kTrain));
}

DataSplits load_mnist_held_out(const Config& data, uint64_t /*seed*/, const KnownData& known) {
  const fs::path folder = data.required<std::string>("dir");
  DataSplits splits;
  if (!is_there(folder, images_name(kTest))) return splits;
  splits.test = load_split(folder, kTest, known.num_classes);
  return splits;
}

}  // namespace

DataSplits load_mnist(const Config& data, uint64_t /*seed*/) {
  const fs::path folder = data.required<std::string>("dir");
  const int64_t num_classes =
      require_at_least(data, "num_classes", data.get<int64_t>("num_classes", 10), 2);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw DataError(folder.string() + ": no such folder; data.dir must hold " +
                    images_name(kTrain) + ", " + labels_name(kTrain) + ", " + images_name(kTest) +
                    " and " + labels_name(kTest) + ", plain or with .gz");
  }
  DataSplits splits;
  splits.train = load_split(folder, kTrain, num_classes);
  splits.test = load_split(folder, kTest, num_classes);
  if (splits.test->example_shape() != splits.train->example_shape()) {
    throw DataError(folder.string() + ": the test images are " +
                    splits.test->example_shape().to_string() + ", the training images " +
                    splits.train->example_shape().to_string());
  }
  return splits;
}

DatasetType mnist_dataset() {
  return {.load = load_mnist,
          .paths = {"dir"},
          .has_training_files = has_mnist_training,
          .load_held_out = load_mnist_held_out,
          .late_keys = std::vector<std::string>()};
}

}  // namespace lacuna
