// Times that were measured on this machine, in files that later processes find them in.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lacuna {

/// "NAME-VERSION.txt" in the folder for what was measured: `LACUNA_CACHE_DIR`, else
/// $XDG_CACHE_HOME/lacuna, else ~/.cache/lacuna. Empty if there is none, or where something
/// else than a file is there.
std::filesystem::path measurement_file(const std::string& name);

/// The seconds that were kept for a key, in the file of that name: a header as of the costs of
/// layouts (cost_cache.hpp), and a line "key seconds" for each. Nothing where the file is of other
/// kernels.
std::optional<double> kept_time(const std::string& name, const std::string& key);
/// Adds it. A file that cannot be written is done without; one of other kernels is replaced.
/// *Requires* a key without spaces.
void keep_time(const std::string& name, const std::string& key, double seconds);

}  // namespace lacuna
