#include "lacuna/framework/data/types/image_folder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/data/formats/image.hpp"
#include "lacuna/framework/data/formats/image_resize.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// What systems put into folders unasked (hidden files such as .DS_Store apart).
bool is_clutter(const std::string& name) {
  const std::string lower = to_lower(name);
  return lower.starts_with('.') || lower == "thumbs.db" || lower == "ehthumbs.db" ||
         lower == "desktop.ini" || lower == "__macosx";
}

// What is in a folder, but for hidden files and clutter, by name.
std::vector<fs::path> entries(const fs::path& folder) {
  if (!is_folder(folder)) throw DataError(folder.string() + ": no such folder");
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_clutter(at->path().filename().string())) paths.push_back(at->path());
  }
  if (error) throw DataError(folder.string() + ": cannot be listed: " + error.message());
  std::ranges::sort(paths, {}, [](const fs::path& path) { return path.filename().string(); });
  return paths;
}

// The files of a split, class by class.
struct Listing {
  std::vector<std::string> classes;
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
};

void require_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return;
  throw DataError(path.string() + ": neither a file nor a link to one");
}

std::vector<fs::path> files_of_class(const fs::path& folder) {
  std::vector<fs::path> files = entries(folder);
  for (const fs::path& file : files) {
    if (is_folder(file)) {
      throw DataError(file.string() + ": a folder inside a class folder; expected images");
    }
    require_file(file);
  }
  return files;
}

void add_class(const fs::path& folder, int64_t label, Listing& listing) {
  const std::vector<fs::path> files = files_of_class(folder);
  if (files.empty()) throw DataError(folder.string() + ": this class has no images");
  listing.files.insert(listing.files.end(), files.begin(), files.end());
  listing.labels.insert(listing.labels.end(), files.size(), label);
}

// Whether files next to the folders of classes are passed over unless they are images, as those of
// a whole data set are (for example a licence).
enum class OtherFiles { Refused, PassedOver };

// With the classes of the training split, or without any where this is that.
Listing list_split(const fs::path& folder, const std::vector<std::string>& known,
                   OtherFiles others = OtherFiles::Refused) {
  Listing listing{.classes = known, .files = {}, .labels = {}};
  for (const fs::path& path : entries(folder)) {
    const std::string name = path.filename().string();
    if (!is_folder(path)) {
      if (others == OtherFiles::PassedOver && !is_image_file(path)) continue;
      throw DataError(path.string() + ": a file outside the class folders; " + folder.string() +
                      " must hold only one folder of images per class");
    }
    if (known.empty()) listing.classes.push_back(name);
    const auto found = std::ranges::find(listing.classes, name);
    if (found == listing.classes.end()) {
      throw DataError(path.string() + ": the training images have no class '" + name + "'; " +
                      suggest_name(name, known));
    }
    add_class(path, found - listing.classes.begin(), listing);
  }
  if (listing.files.empty()) {
    throw DataError(folder.string() + ": holds no folders of images, one for each class");
  }
  if (listing.classes.size() < 2) {
    throw DataError(fmt::format("{}: holds only one class, '{}'; classification needs two",
                                folder.string(), listing.classes.front()));
  }
  return listing;
}

std::shared_ptr<const ArrayDataset> load_split(Listing listing, const ImageFormat& format) {
  Examples examples = read_images(listing.files, format);
  examples.labels = std::move(listing.labels);
  examples.num_classes = static_cast<int64_t>(listing.classes.size());
  examples.class_names = std::move(listing.classes);
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

struct SplitFolders {
  fs::path train;
  std::optional<fs::path> validation, test;
  OtherFiles others = OtherFiles::Refused;
};

// Whether a folder holds those of splits. Else it holds the classes of all splits.
bool has_splits(const fs::path& dir) {
  return is_folder(dir / "train") || is_folder(dir / "val") || is_folder(dir / "test");
}

// The folders below `dir`. One of another name is a mistake, or a split that would be left out.
SplitFolders find_below(const fs::path& dir) {
  if (is_folder(dir) && !has_splits(dir)) {
    return {.train = dir, .validation = {}, .test = {}, .others = OtherFiles::PassedOver};
  }
  SplitFolders folders{.train = dir / "train", .validation = {}, .test = {}};
  for (const fs::path& path : entries(dir)) {
    const std::string name = path.filename().string();
    if (!is_folder(path) && is_image_file(path.string())) {
      throw DataError(path.string() + ": an image outside the class folders; " + dir.string() +
                      " must hold the folders train, val and test");
    }
    if (!is_folder(path) || name == "train") continue;
    if (name == "val") {
      folders.validation = path;
    } else if (name == "test") {
      folders.test = path;
    } else {
      throw DataError(path.string() +
                      ": expected the folders train, val and test; give folders of other names by "
                      "data.train_dir, data.validation_dir and data.test_dir");
    }
  }
  return folders;
}

SplitFolders read_folders(const Config& data) {
  const auto dir = data.optional<std::string>("dir");
  const auto validation = data.optional<std::string>("validation_dir");
  const auto test = data.optional<std::string>("test_dir");
  if (!dir) {
    if (!data.has("train_dir")) {
      data.error(
          "a folder is missing: train_dir (and validation_dir, test_dir), or dir, which "
          "holds train, val and test, or a folder for each class");
    }
    SplitFolders folders{
        .train = data.required<std::string>("train_dir"), .validation = {}, .test = {}};
    if (validation) folders.validation = *validation;
    if (test) folders.test = *test;
    return folders;
  }
  for (const char* key : {"train_dir", "validation_dir", "test_dir"}) {
    if (data.has(key)) data.get(key).error("cannot be combined with dir, which holds all splits");
  }
  return find_below(*dir);
}

Orientation read_orientation(const Config& data) {
  if (!data.has("orientation")) return Orientation::AsStored;
  const auto name = data.required<std::string>("orientation");
  if (name != "exif" && name != "stored") data.get("orientation").fail("exif or stored");
  return name == "exif" ? Orientation::Exif : Orientation::AsStored;
}

ImageFormat read_format(const Config& data) {
  ImageFormat format;
  format.channels = data.get<int64_t>("channels", 3);
  if (format.channels != 1 && format.channels != 3) {
    data.get("channels").fail("3 (red, green, blue) or 1 (grey)");
  }
  format.orientation = read_orientation(data);
  const Config node = data.at("size");
  const std::vector<int64_t> size = node.is_list() ? node.as<std::vector<int64_t>>()
                                                   : std::vector<int64_t>(2, node.as<int64_t>());
  const bool is_valid = size.size() == 2 && std::ranges::all_of(size, [](int64_t side) {
                          return side >= 1 && side <= kMaxImageSide;
                        });
  if (!is_valid) {
    node.error(fmt::format("expected [rows, columns] or one number, each from 1 to {}, found {}",
                           kMaxImageSide, node.to_json()));
  }
  format.height = size[0];
  format.width = size[1];
  return format;
}

}  // namespace

Examples read_images(std::span<const fs::path> paths, const ImageFormat& format) {
  const int64_t channels = format.channels, height = format.height, width = format.width;
  if ((channels != 1 && channels != 3) || height < 1 || height > kMaxImageSide || width < 1 ||
      width > kMaxImageSide) {
    throw StateError(fmt::format("images cannot be converted to {} channels of {} x {} pixels",
                                 channels, height, width));
  }
  const auto bytes = static_cast<size_t>(channels * height * width);
  std::vector<uint8_t> pixels(paths.size() * bytes);
  parallel_for(static_cast<int64_t>(paths.size()), 8, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      fit_image(read_image(paths[i], format.orientation), format.channels, format.height,
                format.width, std::span(pixels).subspan(i * bytes, bytes));
    }
  });
  Examples examples;
  examples.example_shape = Shape{channels, height, width};
  examples.inputs = std::move(pixels);
  return examples;
}

std::vector<fs::path> image_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& path : entries(folder)) {
    if (is_folder(path)) {
      const std::vector<fs::path> below = files_of_class(path);
      files.insert(files.end(), below.begin(), below.end());
    } else {
      require_file(path);
      files.push_back(path);
    }
  }
  if (files.empty()) throw DataError(folder.string() + ": this folder holds no images");
  return files;
}

Examples read_image_inputs(const std::string& path, const Shape& example_shape,
                           Orientation orientation) {
  const Shape& example = example_shape;
  const bool has_channels = example.rank() == 3 && (example[0] == 1 || example[0] == 3);
  if (!has_channels && example.rank() != 2) {
    throw DataError("'" + path + (is_folder(path) ? "' is a folder" : "' is an image") +
                    ", and the model was trained on inputs of shape " + example.to_string());
  }
  const std::vector<fs::path> files =
      is_folder(path) ? image_files_in(path) : std::vector<fs::path>{path};
  Examples examples = read_images(files, {.channels = has_channels ? example[0] : 1,
                                          .height = example[-2],
                                          .width = example[-1],
                                          .orientation = orientation});
  examples.example_shape = example;
  return examples;
}

DataSplits load_image_folder(const Config& data, uint64_t /*seed*/) {
  const ImageFormat format = read_format(data);
  const SplitFolders folders = read_folders(data);
  // All are listed before any image is read, so that a wrong folder is reported at once.
  Listing train = list_split(folders.train, {}, folders.others);
  const std::vector<std::string> classes = train.classes;
  std::optional<Listing> validation, test;
  if (folders.validation) validation = list_split(*folders.validation, classes);
  if (folders.test) test = list_split(*folders.test, classes);
  DataSplits splits;
  splits.train = load_split(std::move(train), format);
  if (validation) splits.validation = load_split(std::move(*validation), format);
  if (test) splits.test = load_split(std::move(*test), format);
  return splits;
}

namespace {

bool has_image_folder_training(const Config& data) {
  std::error_code ignored;
  if (!data.has("dir")) {
    return fs::is_directory(data.optional<std::string>("train_dir").value_or("."), ignored);
  }
  const fs::path dir = data.required<std::string>("dir");
  return is_folder(has_splits(dir) ? dir / "train" : dir);
}

DataSplits load_image_folder_held_out(const Config& data, uint64_t /*seed*/,
                                      const KnownData& known) {
  const ImageFormat format = read_format(data);
  const SplitFolders folders = read_folders(data);
  DataSplits splits;
  if (folders.validation) {
    splits.validation = load_split(list_split(*folders.validation, known.class_names), format);
  }
  if (folders.test) splits.test = load_split(list_split(*folders.test, known.class_names), format);
  return splits;
}

std::optional<Examples> read_image_examples(const std::string& path, const Config& data,
                                            const KnownData& known) {
  if (path == "-" || (!is_folder(path) && !is_image_file(path))) return std::nullopt;
  return read_image_inputs(path, known.example_shape, read_orientation(data));
}

}  // namespace

DatasetType image_folder_dataset() {
  return {.load = load_image_folder,
          .paths = {"dir", "train_dir", "validation_dir", "test_dir"},
          .has_training_files = has_image_folder_training,
          .load_held_out = load_image_folder_held_out,
          .read_inputs = read_image_examples,
          .split_keys = split_keys_with_test(),
          .late_keys = std::vector<std::string>{"test"},
          .new_run_keys = {{"orientation", "exif"}}};
}

}  // namespace lacuna
