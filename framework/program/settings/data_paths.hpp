// Where the files that a configuration names are, and what a new run's configuration has of them.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Of the paths in a configuration file that are relative and lead to nothing from the current
/// folder, gives those the file's folder in front that lead to something from there. Returns a line
/// about them, if there are such. To be called before --set is applied, which means the
/// current folder.
std::vector<std::string> find_beside(Config& config, const std::string& config_path);

/// Makes the paths absolute that lead to something, so that the configuration works from anywhere.
void make_paths_absolute(Config& config);

}  // namespace lacuna
