// The `image_folder` dataset: image files, in a folder for each class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

enum class Orientation;  // AsStored (the first) or Exif, of formats/image.hpp

/// What all images of a data set are brought to.
struct ImageFormat {
  int64_t channels = 3;  ///< 3: red, green, blue; 1: grey
  int64_t height = 0, width = 0;
  Orientation orientation{};  ///< as stored
};

/// Larger sides than this are a mistake.
inline constexpr int64_t kMaxImageSide = 4096;

/// Reads images, in that order: bytes, [channels, height, width], without labels. Each is scaled so
/// that it just covers height × width (bilinear, with antialiasing), and the middle of it is taken.
/// *Errors:* DataError with the path as in formats/image.hpp; StateError on a format out of range.
/// *Cost:* several threads decode; what is kept is the bytes of the result.
Examples read_images(std::span<const std::filesystem::path> paths, const ImageFormat& format);

/// The images of a file, or of the files of a folder (image_files_in), to predict from by a model
/// that was trained on examples of this shape. *Errors:* DataError; where they are no images.
Examples read_image_inputs(const std::string& path, const Shape& example_shape,
                           Orientation orientation);

/// The files of a folder that are not hidden, and those of the folders in it, by their names: to
/// predict from. *Errors:* DataError, with the path, where there are none, and on folders below
/// these.
std::vector<std::filesystem::path> image_files_in(const std::filesystem::path& folder);

/// Keys of `data` (in addition to those of load_data):
///
/// - `train_dir` (required), `validation_dir`, `test_dir` (default: no such split): folders that
/// hold
///   a folder of images for each class; or instead of them `dir`: a folder that holds these as
///   `train` and, where they are there, `val` and `test`, or the classes of all splits.
/// - `test`: as load_data has it, where no folder of that split is there.
/// - `size` (required): [rows, columns] of the examples, or one number for both.
/// - `orientation`: exif (images are turned as their Exif tag states) | stored (they are not; the
///   default, so that runs of earlier versions read what they were trained on. The program writes
///   `exif` into the configuration of a new run without the key).
/// - `channels`: 3 (the default; grey images have three equal ones) | 1 (grey).
///
/// Inputs are bytes, [channels, rows, columns], all held in memory. Classes are the folders of the
/// training split in the order of their names' bytes; the other splits' must be among them. What a
/// file holds counts, and not its name; hidden ones (with a dot in front) are passed over.
/// *Errors:* DataError, with the path, on a folder that is missing, has fewer than two classes, an
/// empty class, or a class that training does not have; on a file in no class folder, a folder in a
/// class folder, and a file that is not an image, as in formats/image.hpp. ConfigError on values
/// out of range, and when both ways to name the folders are used.
DataSplits load_image_folder(const Config& data, uint64_t seed);
DatasetType image_folder_dataset();

}  // namespace lacuna
