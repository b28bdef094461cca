// The binary files of CIFAR-10 and CIFAR-100: records of labels and 32×32 pixels in three colours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lacuna {

/// Channels, rows and columns of an image, and bytes of it.
inline constexpr int64_t kCifarChannels = 3, kCifarSide = 32;
inline constexpr int64_t kCifarPixels = kCifarChannels * kCifarSide * kCifarSide;

/// A byte in front of each image.
struct CifarLabel {
  const char* name;  ///< for messages
  int64_t classes;   ///< it lies in [0, classes)
};

/// What is read of one file or of several.
struct CifarRecords {
  std::vector<uint8_t> labels;  ///< [count], one of the labels of each record
  std::vector<uint8_t> pixels;  ///< [count, 3, 32, 32], 0 to 255
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

/// Appends the records of a file to `records`: in each the bytes `layout`, of which number `label`
/// is kept, and the image. Returns how many there were. *Requires* label < layout.size(). *Errors:*
/// DataError with the path when the file cannot be read, is empty, does not hold a whole number of
/// records, or a label is out of range. *Source:* the format's page,
/// https://www.cs.toronto.edu/~kriz/cifar.html.
int64_t append_cifar_records(const std::filesystem::path& path, std::span<const CifarLabel> layout,
                             size_t label, CifarRecords& records);

}  // namespace lacuna
