// ErrorPlace: the place of the mistake that a ConfigError names, for programs that show it there.
#pragma once

#include <string>
#include <string_view>

namespace lacuna {

/// The beginning of a message such as "run.yaml:3:5: train.batch_size: expected …". What the
/// message does not state is empty or 0.
struct ErrorPlace {
  std::string file;
  int line = 0;     ///< from 1
  int column = 0;   ///< from 1
  std::string key;  ///< dotted, as in "train.batch_size"

  /// Reads a message.
  static ErrorPlace of(std::string_view message);
};

}  // namespace lacuna
