// Times measured on this machine, in files that later processes read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lacuna {

/// "NAME-VERSION.txt" in the folder of measurements: `LACUNA_CACHE_DIR`, else
/// $XDG_CACHE_HOME/lacuna, else ~/.cache/lacuna. Empty if there is none, or if something other than
/// a regular file is there.
std::filesystem::path measurement_file(const std::string& name);

/// The seconds kept for a key in the file of that name: a header as in the costs of layouts
/// (cost_cache.hpp), and one line "key seconds" per key. Empty if the file belongs to other
/// kernels.
std::optional<double> kept_time(const std::string& name, const std::string& key);
/// Adds it. Errors of writing are ignored; a file of other kernels is replaced. *Requires* a key
/// without spaces.
void keep_time(const std::string& name, const std::string& key, double seconds);

}  // namespace lacuna
