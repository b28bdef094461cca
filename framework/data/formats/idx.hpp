// IDX files, plain or gzipped: the format of MNIST's images and labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lacuna {

/// Grey images, row by row.
struct IdxImages {
  int64_t count = 0, rows = 0, columns = 0;
  std::vector<uint8_t> pixels;  ///< count × rows × columns, 0 to 255
};

/// Reads an IDX file of images (magic number 0x00000803). A name that ends in .gz is unpacked.
/// *Errors:* DataError with the path when the file cannot be read, is truncated, has another magic
/// number, has bytes after its data, has no images or impossible sizes, or its gzip stream is
/// damaged. *Cost:* memory in proportion to what the file holds, whatever its header claims.
/// *Source:* format of http://yann.lecun.com/exdb/mnist.
IdxImages read_idx_images(const std::filesystem::path& path);

/// Reads an IDX file of labels (magic number 0x00000801). *Errors:* as read_idx_images.
std::vector<uint8_t> read_idx_labels(const std::filesystem::path& path);

}  // namespace lacuna
