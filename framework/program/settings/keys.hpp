// One table of the configuration's keys: what commands have to know of each of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// A key, with all that is below it. A trait that no row has does not hold.
struct KeyTraits {
  std::string path;          ///< dotted: "train.epochs"
  bool is_path = false;      ///< its text names a file or folder
  bool may_change = false;   ///< when a run is resumed: the numbers stay what they are
  bool in_eval = false;      ///< an evaluation depends on it
  bool is_measured = false;  ///< a section that a run writes: measured, and not chosen
};

/// The table, with the paths of all datasets that are registered.
std::vector<KeyTraits> config_keys();

/// The row of a dotted path, or of the nearest key above it; one of nothing if there is none.
KeyTraits find_key(std::string_view path);

}  // namespace lacuna
