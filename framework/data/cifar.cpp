#include "lacuna/framework/data/cifar.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/cifar_records.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// Where a data set's files are, and what stands before each image.
struct CifarFiles {
  const char* name;
  const char* folder;   // as it is unpacked
  const char* archive;  // what to fetch
  std::vector<std::string> train, test;
  std::vector<CifarLabel> layout;
};

CifarFiles cifar10_files() {
  return {.name = "CIFAR-10",
          .folder = "cifar-10-batches-bin",
          .archive = "cifar-10-binary.tar.gz",
          .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                    "data_batch_5.bin"},
          .test = {"test_batch.bin"},
          .layout = {{"label", 10}}};
}

CifarFiles cifar100_files() {
  return {.name = "CIFAR-100",
          .folder = "cifar-100-binary",
          .archive = "cifar-100-binary.tar.gz",
          .train = {"train.bin"},
          .test = {"test.bin"},
          .layout = {{"coarse label", 20}, {"fine label", 100}}};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The folder itself or the usual one below it.
fs::path find_folder(const fs::path& dir, const CifarFiles& files) {
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored)) {
    throw DataError(
        fmt::format("{}: no such folder; data.dir must hold {}'s binary files ({}), or "
                    "the folder {} with them",
                    dir.string(), files.name, files.archive, files.folder));
  }
  for (const fs::path& folder : {dir, dir / files.folder}) {
    if (is_there(folder / files.train.front()) || is_there(folder / files.test.front()))
      return folder;
  }
  throw DataError(
      fmt::format("{}: holds neither {} and {} nor the folder {} with them; {}'s binary "
                  "files are in {} (its Python files cannot be read)",
                  dir.string(), join(files.train, ", "), files.test.front(), files.folder,
                  files.name, files.archive));
}

Examples images_of(CifarRecords& records) {
  records.pixels.shrink_to_fit();  // it grew by doubling
  Examples examples;
  examples.example_shape = Shape{kCifarChannels, kCifarSide, kCifarSide};
  examples.inputs = std::move(records.pixels);
  return examples;
}

std::shared_ptr<const ArrayDataset> load_split(const fs::path& folder,
                                               const std::vector<std::string>& names,
                                               const CifarFiles& files, size_t label) {
  CifarRecords records;
  int64_t first = 0;
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    if (!is_there(path)) {
      throw DataError(fmt::format("{}: no such file; {} consists of {} and {}", path.string(),
                                  files.name, join(files.train, ", "), files.test.front()));
    }
    const int64_t count = append_cifar_records(path, files.layout, label, records);
    if (&name == &names.front()) first = count;
    if (count != first) {
      throw DataError(
          fmt::format("{}: holds {} images, {} holds {}; expected as many in each: is one "
                      "of them cut off?",
                      path.string(), count, names.front(), first));
    }
  }
  Examples examples = images_of(records);
  examples.labels.assign(records.labels.begin(), records.labels.end());
  examples.num_classes = files.layout[label].classes;
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

DataSplits load_files(const Config& data, const CifarFiles& files, size_t label) {
  const fs::path folder = find_folder(data.required<std::string>("dir"), files);
  DataSplits splits;
  splits.train = load_split(folder, files.train, files, label);
  splits.test = load_split(folder, files.test, files, label);
  return splits;
}

}  // namespace

DataSplits load_cifar10(const Config& data, uint64_t /*seed*/) {
  return load_files(data, cifar10_files(), 0);
}

DataSplits load_cifar100(const Config& data, uint64_t /*seed*/) {
  const auto labels = data.get<std::string>("labels", "fine");
  if (labels != "fine" && labels != "coarse") data.get("labels").fail("fine or coarse");
  return load_files(data, cifar100_files(), labels == "fine" ? 1 : 0);
}

DataSplits load_cifar_held_out(const Config& data) {
  const bool has_fine = data.required<std::string>("type") == "cifar100";
  const CifarFiles files = has_fine ? cifar100_files() : cifar10_files();
  const bool is_fine = has_fine && data.get<std::string>("labels", "fine") == "fine";
  const fs::path folder = find_folder(data.required<std::string>("dir"), files);
  DataSplits splits;
  if (!is_there(folder / files.test.front())) return splits;
  splits.test = load_split(folder, files.test, files, is_fine ? 1 : 0);
  return splits;
}

bool has_cifar_training(const Config& data) {
  const bool has_fine = data.required<std::string>("type") == "cifar100";
  const CifarFiles files = has_fine ? cifar100_files() : cifar10_files();
  const fs::path dir = data.required<std::string>("dir");
  for (const fs::path& folder : {dir, dir / files.folder}) {
    if (std::ranges::all_of(files.train, [&](const auto& name) { return is_there(folder / name); }))
      return true;
  }
  return false;
}

Examples read_cifar_images(const fs::path& path, CifarKind kind) {
  CifarRecords records;
  const CifarFiles files = kind == CifarKind::Cifar10 ? cifar10_files() : cifar100_files();
  append_cifar_records(path, files.layout, 0, records);
  return images_of(records);
}

}  // namespace lacuna
