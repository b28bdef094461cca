// Sections that are lists, and --set of keys that only their maps have.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// *Errors:* ConfigError if the section `model`, `sparsity` or `sparsifiers` is a list and the
/// assignment is to a documented key of the map that the section could be; it shows what to write.
void require_map_for_key(const Config& config, const std::string& assignment);

}  // namespace lacuna
