// A profile in words, as JSON, and as a trace that browsers show.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/train/loop/profiler.hpp"

namespace lacuna {

/// Lines of a table: milliseconds per step by layer and kind. `layers`: how many are shown, those
/// that take the most time; the others are one line.
std::vector<std::string> profile_table(const Profile& profile, size_t layers);

/// What profile.json holds (docs/reference/run-folder.md).
Config to_config(const Profile& profile);

/// What profile_trace.json holds: the Trace Event Format of Chrome, which chrome://tracing and
/// Perfetto open.
std::string chrome_trace(const Profile& profile);

/// Writes profile.json and profile_trace.json into a run's folder. *Errors:* StateError.
void write_profile(const Profile& profile, const std::string& folder);

}  // namespace lacuna
