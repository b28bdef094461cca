#include "lacuna/framework/data/types/cifar.h"

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
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/formats/cifar_records.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// The files of a data set, and the bytes before each image.
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
      throw DataError(fmt::format(
          "{}: holds {}, {} holds {}; expected as many in each: is one of them truncated?",
          path.string(), plural(count, "image"), names.front(), first));
    }
  }
  Examples examples = images_of(records);
  examples.labels.assign(records.labels.begin(), records.labels.end());
  examples.num_classes = files.layout[label].classes;
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

CifarFiles files_of(CifarKind kind) {
  return kind == CifarKind::Cifar10 ? cifar10_files() : cifar100_files();
}

// The requested label of a record.
size_t label_of(const Config& data, CifarKind kind) {
  if (kind == CifarKind::Cifar10) return 0;
  const auto labels = data.get<std::string>("labels", "fine");
  if (labels != "fine" && labels != "coarse") data.get("labels").fail("fine or coarse");
  return labels == "fine" ? 1 : 0;
}

DataSplits load_kind(const Config& data, CifarKind kind) {
  const size_t label = label_of(data, kind);
  const CifarFiles files = files_of(kind);
  const fs::path folder = find_folder(data.required<std::string>("dir"), files);
  DataSplits splits;
  splits.train = load_split(folder, files.train, files, label);
  splits.test = load_split(folder, files.test, files, label);
  return splits;
}

DataSplits load_test(const Config& data, CifarKind kind) {
  const CifarFiles files = files_of(kind);
  const size_t label = label_of(data, kind);
  const fs::path folder = find_folder(data.required<std::string>("dir"), files);
  DataSplits splits;
  if (!is_there(folder / files.test.front())) return splits;
  splits.test = load_split(folder, files.test, files, label);
  return splits;
}

bool has_training(const Config& data, const CifarFiles& files) {
  const fs::path dir = data.required<std::string>("dir");
  return std::ranges::any_of(std::vector{dir, dir / files.folder}, [&](const fs::path& folder) {
    return std::ranges::all_of(files.train,
                               [&](const auto& name) { return is_there(folder / name); });
  });
}

DatasetType dataset_of(CifarKind kind) {
  return {.load = [kind](const Config& data, uint64_t) { return load_kind(data, kind); },
          .paths = {"dir"},
          .has_training_files =
              [kind](const Config& data) { return has_training(data, files_of(kind)); },
          .load_held_out = [kind](const Config& data, uint64_t,
                                  const KnownData&) { return load_test(data, kind); },
          .read_inputs = [kind](const std::string& path, const Config&,
                                const KnownData&) -> std::optional<Examples> {
            if (!path.ends_with(".bin")) return std::nullopt;
            return read_cifar_images(path, kind);
          },
          .late_keys = std::vector<std::string>()};
}

}  // namespace

DataSplits load_cifar10(const Config& data, uint64_t /*seed*/) {
  return load_kind(data, CifarKind::Cifar10);
}

DataSplits load_cifar100(const Config& data, uint64_t /*seed*/) {
  return load_kind(data, CifarKind::Cifar100);
}

DatasetType cifar10_dataset() { return dataset_of(CifarKind::Cifar10); }
DatasetType cifar100_dataset() { return dataset_of(CifarKind::Cifar100); }

Examples read_cifar_images(const fs::path& path, CifarKind kind) {
  CifarRecords records;
  append_cifar_records(path, files_of(kind).layout, 0, records);
  return images_of(records);
}

}  // namespace lacuna
