// EventFile: TensorBoard's files of events: numbers and images under tags, by step.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/records/mask_record.hpp"

namespace lacuna {

/// The CRC of Castagnoli's polynomial. *Source:* RFC 3720, appendix B.4.
uint32_t crc32c(std::string_view bytes);

/// Appends events to a new file. Each event is a TFRecord (length, masked CRC-32C of the length,
/// data, masked CRC-32C of the data) whose data is an Event message of protocol buffers.
/// *Source:* tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto and
/// tensorflow/core/framework/summary.proto, field numbers as there.
class EventFile {
 public:
  using Scalar = std::pair<std::string, double>;  ///< a tag and its value, stored as float32

  /// Creates the file, or empties an existing one, and writes the record that begins each.
  /// *Errors:* StateError with the path, here and below.
  EventFile(std::string path, double wall_time);

  /// One event with these numbers; flushed, so that a reader sees it at once.
  void write(int64_t step, double wall_time, const std::vector<Scalar>& scalars);
  void write(int64_t step, double wall_time, const std::string& tag, const MaskPicture& picture);

  const std::string& path() const { return path_; }

 private:
  void append(std::string_view event);

  std::string path_;
  std::ofstream file_;
};

}  // namespace lacuna
