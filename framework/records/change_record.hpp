// changes.jsonl: what of a run's configuration was changed while it went on, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// A key that had another value up to a step.
struct ConfigChange {
  int64_t step = 0;      ///< optimizer steps done when it was changed
  std::string key;       ///< its dotted path
  Config before, after;  ///< null: it was not there
};

/// The lines of changes.jsonl in order; none where the file is not there. *Errors:* DataError with
/// the line that is no such change; StateError where it is no file itself.
std::vector<ConfigChange> read_changes(const std::string& path);

/// A value as messages and reports show it: "nothing" for null.
std::string value_in_words(const Config& value);

/// Replaces the file by these, in one step; without any, and if there is none, it makes none.
/// *Errors:* StateError.
void write_changes(const std::string& path, const std::vector<ConfigChange>& changes);

}  // namespace lacuna
