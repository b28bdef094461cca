// What killed processes have left next to the files and folders that they were writing.
#pragma once

#include <filesystem>
#include <string>

namespace lacuna {

/// The folder that `path` is in; "." where it names none.
std::filesystem::path folder_of(const std::string& path);

/// "<folder of path>/.<name>.tmp-<id of this process>": where what becomes `path` is written first.
std::string temporary_beside(const std::string& path);

/// Removes the temporary files and folders next to `path` that were to become it, of processes
/// which are no more. A folder that a killed process had moved out of the way ("…-old") is put back
/// where nothing is at `path`. What cannot be removed stays; what a living process may be writing
/// stays.
void remove_leftovers(const std::string& path);

}  // namespace lacuna
